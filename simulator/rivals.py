"""The schedulers that Jobtree is compared with, at equal budgets and on the same facts of placement.

    fifo           in the order of submission; who does not fit lets nobody pass (of another family, where money lacks)
    easy           the same, and later jobs may pass as long as the first that waits is not delayed [1]
    conservative   later jobs may pass as long as none before them is delayed: each has a reservation [2]
    kueue          an owner's nominal quota, what its cohort does not use beyond it, one workload at a time: first who
                   stays within its quota, then by priority and age; a workload within its quota preempts who borrows

A family is a cohort: who has a common ancestor may use what the others leave. Ends are known as manifests tell them
(`Job.told`, and when that has passed the time limit), to Jobtree as to these. ``easy-limit`` and ``conservative-limit``
know time limits alone, as Slurm does: what they let pass surely ends in time, as what passes a promise of Jobtree's.

[1] D. Lifka, The ANL/IBM SP scheduling system, 1995. [2] A. Mu'alem, D. Feitelson, Utilization, predictability,
workloads, and user runtime estimates in scheduling the IBM SP2 with backfilling, 2001.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from math import inf
from typing import Final

import numpy as np

from simulator.fleet import Free, Held, Placed, Rival, place, told
from simulator.stream import Job, Key

DEPTH: Final = 50
"""Jobs that conservative backfilling holds reservations for at once, the oldest, as Slurm's bf_max_job_test has it."""
PRIORITY: Final = "priority"
"""The label of a run that says its priority to who knows priorities; 0 where it has none."""


def _alike(job: Job) -> tuple[object, ...]:
    """Key of jobs that are alike to who looks for room and money."""
    spec = job.run.spec
    return job.owner, job.flavor, job.gpus, spec.resources.gpus_per_pod, repr(spec.locality)


def _now(rival: Rival, job: Job, free: Free) -> Placed | None:
    """Place where a job could start, its money being there."""
    return place(job, free, rival.facts) if rival.money(job) >= job.gpus else None


def fifo(rival: Rival, at: int) -> None:
    """Start in the order of submission: see the module."""
    poor: set[str] = set()
    for job in list(rival.queue):
        cohort = rival.facts.cohort(job.owner)
        if cohort in poor:
            continue
        if rival.money(job) < job.gpus:
            poor.add(cohort)
            continue
        placed = place(job, rival.usable(), rival.facts)
        if placed is None:
            return
        rival.start(job, at, placed)


class _Ahead:
    """Resources that will be free, by expected ends: room and money at a time to come, less what is promised there."""

    def __init__(self, rival: Rival, at: int) -> None:
        self.rival, self.facts = rival, rival.facts
        self.free = dict(rival.usable())
        self.used = Counter(rival.cohort_used)
        self.ends = sorted((held.end(at), key) for key, held in rival.held.items())

    def give(self, held: Held) -> None:
        """Count it as ended."""
        self.used[self.facts.pool(held.job)] -= held.job.gpus
        for node, gpus in held.placed.items():
            self.free[node] += 0 if self.rival.is_down(node) else gpus

    def take(self, job: Job, placed: Placed) -> None:
        """Count it as started."""
        self.used[self.facts.pool(job)] += job.gpus
        for node, gpus in placed.items():
            self.free[node] -= gpus

    def fits(self, job: Job) -> Placed | None:
        """Place where it could start then; None: nowhere."""
        pool = self.facts.pool(job)
        if self.facts.shared[pool] - self.used[pool] < job.gpus:
            return None
        return place(job, self.free, self.facts)

    def until(self, job: Job) -> float:
        """Go on to the first time at which a job fits, which is returned; infinite where none is known."""
        for end, key in self.ends:
            if end == inf:
                return inf
            self.give(self.rival.held[key])
            if self.fits(job) is not None:
                return end
        return inf


def easy(rival: Rival, at: int) -> None:
    """Backfill as EASY does: the first that waits is promised the time at which known ends let it start."""
    fifo(rival, at)
    if not rival.queue:
        return
    head = rival.queue[0]
    ahead = _Ahead(rival, at)
    shadow = ahead.until(head)
    hopeless: set[tuple[object, ...]] = set()
    for job in rival.queue[1:].copy():
        if _alike(job) in hopeless:
            continue
        placed = _now(rival, job, rival.usable())
        if placed is None:
            hopeless.add(_alike(job))
            continue
        if at + told(job) > shadow:
            ahead.take(job, placed)
            if any(ahead.free[node] < 0 for node in placed) or ahead.fits(head) is None:
                ahead.give(Held(job, at, placed))
                continue
        rival.start(job, at, placed)


class _Profile:
    """Room and money over time: a row per step from its second on, a column per node and per pool of money."""

    def __init__(self, rival: Rival, at: int) -> None:
        self.facts = rival.facts
        self.nodes, self.pools = sorted(rival.facts.gpus), sorted(rival.facts.shared)
        self.column = {name: number for number, name in enumerate([*self.nodes, *self.pools])}
        free, used = rival.usable(), rival.cohort_used
        row = [*(free[node] for node in self.nodes), *(self.facts.shared[pool] - used[pool] for pool in self.pools)]
        self.times: list[float] = [at]
        rows = [np.array(row)]
        for end, key in sorted((held.end(at), key) for key, held in rival.held.items()):
            if end == inf:
                break
            if end > self.times[-1]:
                self.times.append(end)
                rows.append(rows[-1].copy())
            held = rival.held[key]
            for node, gpus in held.placed.items():
                rows[-1][self.column[node]] += 0 if rival.is_down(node) else gpus
            rows[-1][self._pool(held.job)] += held.job.gpus
        self.rows = rows

    def _pool(self, job: Job) -> int:
        return self.column[self.facts.pool(job)]

    def reserve(self, job: Job) -> tuple[float, Placed] | None:
        """The first time from which a job fits for as long as it is expected to take, and where; it is taken."""
        pool, width = self._pool(job), len(self.nodes)
        for step, begin in enumerate(self.times):
            if self.rows[step][pool] < job.gpus or self.rows[step][:width].sum() < job.gpus:
                continue
            end = begin + told(job)
            last = bisect_left(self.times, end)
            least = np.min(self.rows[step:last], axis=0)
            if least[pool] < job.gpus:
                continue
            placed = place(job, dict(zip(self.nodes, least[:width].tolist(), strict=True)), self.facts)
            if placed is not None:
                self._take(job, step, end, placed)
                return begin, placed
        return None

    def _take(self, job: Job, step: int, end: float, placed: Placed) -> None:
        last = bisect_left(self.times, end)
        if end != inf and (last == len(self.times) or self.times[last] != end):
            self.times.insert(last, end)
            self.rows.insert(last, self.rows[last - 1].copy())
        for row in self.rows[step:last]:
            row[self._pool(job)] -= job.gpus
            for node, gpus in placed.items():
                row[self.column[node]] -= gpus


def conservative(rival: Rival, at: int) -> None:
    """Backfill conservatively: reservations are made anew in each turn, so who ends early brings them forward."""
    queue = rival.queue[:DEPTH]
    able = [number for number, job in enumerate(queue) if _now(rival, job, rival.usable()) is not None]
    if not able:
        return
    profile = _Profile(rival, at)
    for job in queue[: able[-1] + 1]:
        found = profile.reserve(job)
        if found is not None and found[0] == at:
            rival.start(job, at, found[1])


def kueue(rival: Rival, at: int) -> None:
    """Admit as Kueue does: heads of the queues, one by one, until no queue has an untried one."""
    queues: dict[str, list[Job]] = {}
    for job in sorted(rival.queue, key=lambda each: (-_priority(each), each.at, each.key)):
        queues.setdefault(job.owner, []).append(job)
    hopeless: set[tuple[object, ...]] = set()
    while queues:
        first = {jobs[0].key: jobs[0] for jobs in queues.values()}
        heads = [(not _within(rival, job), -_priority(job), job.at, job.key) for job in first.values()]
        for *_, key in sorted(heads):
            job = first[key]
            if _alike(job) not in hopeless and not _admitted(rival, job, at):
                hopeless.add(_alike(job))
            queues[job.owner].pop(0)
        queues = {owner: jobs for owner, jobs in queues.items() if jobs}


def _priority(job: Job) -> int:
    return int((job.run.metadata.labels or {}).get(PRIORITY, "0"))


def _quota(job: Job) -> tuple[str, str]:
    return job.owner, job.flavor


def _within(rival: Rival, job: Job) -> bool:
    """Does its owner stay within its nominal quota with it?"""
    return rival.used[_quota(job)] + job.gpus <= rival.facts.nominal[_quota(job)]


def _admitted(rival: Rival, job: Job, at: int) -> bool:
    placed = _now(rival, job, rival.usable())
    if placed is None:
        victims = _victims(rival, job)
        if victims is None:
            return False
        for victim in victims:
            rival.stop(victim, "Preempted")
        placed = _now(rival, job, rival.usable())
        assert placed is not None, "its victims make room"
    rival.start(job, at, placed)
    return True


def _victims(rival: Rival, job: Job) -> list[Key] | None:
    """Whom it preempts: of its own queue those of lower priority, and where it stays within its quota who borrows; of
    these the lowest priority first, then the youngest. None where that does not help.
    """
    owner, flavor = _quota(job)
    may_reclaim = rival.used[owner, flavor] + job.gpus <= rival.facts.nominal[owner, flavor]
    cohort = rival.facts.cohort(owner)
    able = []
    for key, held in rival.held.items():
        theirs = _quota(held.job)
        if theirs[1] != flavor or rival.facts.cohort(theirs[0]) != cohort:
            continue
        own = theirs[0] == owner
        borrows = rival.used[theirs] > rival.facts.nominal[theirs]
        if (own and _priority(held.job) < _priority(job)) or (not own and may_reclaim and borrows):
            able.append((own, _priority(held.job), -held.since, key))
    ahead, used, taken = _Ahead(rival, 0), Counter(rival.used), []
    for *_, key in sorted(able):
        held = rival.held[key]
        theirs = _quota(held.job)
        if theirs[0] != owner and used[theirs] <= rival.facts.nominal[theirs]:
            continue
        used[theirs] -= held.job.gpus
        ahead.give(held)
        taken.append(key)
        if ahead.fits(job) is not None:
            return _fewer(rival, job, ahead, taken)
    return None


def _fewer(rival: Rival, job: Job, ahead: _Ahead, taken: list[Key]) -> list[Key]:
    """Without those that need not go after all, the last that was taken first."""
    kept = list(taken)
    for key in reversed(taken[:-1]):
        held = rival.held[key]
        ahead.take(held.job, held.placed)
        if all(ahead.free[node] >= 0 for node in held.placed) and ahead.fits(job) is not None:
            kept.remove(key)
        else:
            ahead.give(held)
    return kept


RIVALS: Final[dict[str, Callable[[Rival, int], None]]] = {
    "fifo": fifo, "easy": easy, "easy-limit": easy, "conservative": conservative, "conservative-limit": conservative,
    "kueue": kueue,
}  # fmt: skip
BY_LIMIT: Final = frozenset({"easy-limit", "conservative-limit"})
"""Those that plan by time limits, whatever a job expects."""
