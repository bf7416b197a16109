"""What other schedulers than Jobtree know and hold: fleet, quotas and cohorts, and where groups may lie."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from jobtree.api.kinds.core import Node
from jobtree.api.kinds.policy import Policy
from jobtree.world.naming.kinship import family_of
from jobtree.world.reading.intake import Intake
from simulator.loop import BLIP, Stop, Turn
from simulator.stream import Job, Key, Mode


class Facts(NamedTuple):
    """The fleet and the money: GPUs and labels by node, the nodes of each domain, nominal quota by (owner, flavor), and
    who shares with whom: the cohort of each owner, and the quota of each (cohort, flavor).
    """

    gpus: dict[str, int]
    labels: dict[str, Mapping[str, str]]
    domains: dict[tuple[str, str], list[str]]
    nominal: Counter[tuple[str, str]]
    cohorts: dict[str, str]
    shared: Counter[tuple[str, str]]

    def cohort(self, owner: str) -> str:
        """An owner's cohort; without a Budget its own."""
        return self.cohorts.get(owner, owner)

    def pool(self, job: Job) -> tuple[str, str]:
        """Money that a job takes: (cohort, flavor)."""
        return self.cohort(job.owner), job.flavor


def facts_of(intake: Intake, owners: Iterable[str]) -> Facts:
    """Read the facts of a state file. ``owners``: of the jobs."""
    policy = (intake.policy or Policy()).spec
    names = policy.topology.labels
    gpus = {node.metadata.name: _gpus(node, policy.resource_names) for node in intake.nodes}
    labels: dict[str, Mapping[str, str]] = {
        node.metadata.name: dict(node.metadata.labels or {}) for node in intake.nodes
    }
    domains: dict[tuple[str, str], list[str]] = {}
    for name, mine in labels.items():
        place = "/".join(mine.get(label, "") for label in (names.region, names.cluster, names.domain))
        domains.setdefault((mine.get(names.flavor, ""), place if mine.get(names.domain) else name), []).append(name)
    bounds = [(budget.spec.owner, each) for budget in intake.budgets for each in budget.spec.envelopes]
    family = family_of([(budget.spec.owner, budget.spec.parents) for budget in intake.budgets])
    known = sorted({*owners, *(owner for owner, _ in bounds)})
    cohorts = {owner: min(root for root in family.lineage(owner) if not family.parents(root)) for owner in known}
    nominal: Counter[tuple[str, str]] = Counter()
    shared: Counter[tuple[str, str]] = Counter()
    for owner, each in bounds:
        nominal[owner, each.flavor] += each.concurrency
        shared[cohorts[owner], each.flavor] += each.concurrency
    return Facts(gpus, labels, domains, nominal, cohorts, shared)


def _gpus(node: Node, resources: Iterable[str]) -> int:
    return sum(int(node.status.allocatable.get(name, 0)) for name in resources)


Free = dict[str, int]
"""Free GPUs by node."""
Placed = dict[str, int]
"""GPUs of one job by node."""


def place(job: Job, free: Free, facts: Facts) -> Placed | None:
    """Place a job's groups, each in one domain: the fullest domain and, in it, the fullest nodes; None: nowhere."""
    spec = job.run.spec
    size = spec.locality.group_gpus or job.gpus
    groups = [min(size, job.gpus - at) for at in range(0, job.gpus, size)]
    pod = spec.resources.gpus_per_pod or 0
    wanted = spec.locality.selector or {}
    domains = [
        [node for node in nodes if free.get(node, 0) and all(facts.labels[node].get(k) == v for k, v in wanted.items())]
        for (flavor, _), nodes in facts.domains.items() if flavor == job.flavor
    ]  # fmt: skip
    if len(groups) == 1 or not spec.locality.allow_cross_group_spread:
        found = (_laid(groups, pod, nodes, free) for nodes in _fullest(domains, free, job.gpus))
        return next((each for each in found if each is not None), None)
    left, whole = dict(free), Counter[str]()
    for group in groups:
        laid = next((x for nodes in _fullest(domains, left, group) if (x := _laid([group], pod, nodes, left))), None)
        if laid is None:
            return None
        for node, gpus in laid.items():
            left[node] -= gpus
        whole.update(laid)
    return dict(whole)


def _fullest(domains: Sequence[list[str]], free: Free, gpus: int) -> Iterator[list[str]]:
    """Domains with so much room, that with the least first."""
    rooms = [(sum(free[node] for node in nodes), number) for number, nodes in enumerate(domains)]
    return (domains[number] for room, number in sorted(rooms) if room >= gpus)


def _laid(groups: Iterable[int], pod: int, nodes: Iterable[str], free: Free) -> Placed | None:
    """All of these groups on these nodes: pods of ``pod`` GPUs, or with 0 as few pieces as may be."""
    room = sorted((free[node], node) for node in nodes)
    laid: Counter[str] = Counter()
    for group in groups:
        left = group
        while left:
            piece = pod or left
            at = bisect_left(room, (piece, ""))
            if at == len(room):
                if pod or not room:
                    return None
                at, piece = len(room) - 1, room[-1][0]
            gpus, node = room.pop(at)
            laid[node] += piece
            left -= piece
            if gpus > piece:
                insort(room, (gpus - piece, node))
    return dict(laid)


class Held(NamedTuple):
    """A job that runs: since when, where, and when it is expected to end by what is known at its start."""

    job: Job
    since: int
    placed: Placed

    def end(self, at: int) -> float:
        """End that is expected of it, as of ``at``."""
        return self.since + told(self.job, at - self.since)


def told(job: Job, served: int = 0) -> float:
    """Seconds that a job is expected to take, of which ``served`` have passed."""
    expected = inf if job.told is None else job.told
    if expected <= served:
        expected = inf if job.limit is None else job.limit
    return max(expected, served + 1)


class Rival:
    """Scheduler as `loop.Scheduler` has it. ``choose``: takes what starts now off the queue, by `start`."""

    def __init__(self, facts: Facts, choose: "Callable[[Rival, int], None]") -> None:
        self.facts, self._choose = facts, choose
        self.free: Free = dict(facts.gpus)
        self.queue: list[Job] = []
        self.held: dict[Key, Held] = {}
        self.used: Counter[tuple[str, str]] = Counter()
        self.cohort_used: Counter[tuple[str, str]] = Counter()
        self._down: dict[str, int] = {}
        self._stops: list[Stop] = []
        self._starts: dict[Key, tuple[frozenset[str], int]] = {}

    def hold(self, job: Job, since: int, placed: Placed) -> None:
        """Hold a job that runs as the stream begins."""
        self._take(job, since, placed)

    def submit(self, job: Job, at: int) -> None:
        """Let a job wait, unless it could never fit: then nobody waits for it."""
        if self.money(job, of_all=True) >= job.gpus and place(job, self.facts.gpus, self.facts) is not None:
            self.queue.append(job)

    def fail(self, node: str, mode: Mode, at: int) -> None:
        """Use it for nothing new; what it holds is given up when it has been silent for long."""
        self._down[node] = at + (BLIP + 1 if mode == "NotReady" else 0)

    def recover(self, node: str, at: int) -> None:
        """Use it for new work."""
        self._down.pop(node, None)

    def finish(self, key: Key, at: int) -> None:
        """Free what it held."""
        if key in self.held:
            self._give(key)

    def turn(self, at: int) -> Turn:
        """End what is lost or too long, then start what it chooses."""
        self._stops, self._starts = [], {}
        lost = {node for node, due in self._down.items() if due <= at}
        for key, held in sorted(self.held.items()):
            if not lost.isdisjoint(held.placed):
                self.stop(key, "NodeFailure")
            elif held.job.limit is not None and held.since + held.job.limit <= at:
                self._give(key)
                self._stops.append(Stop(key, "Failed", "TimeLimit"))
        self._choose(self, at)
        limits = [held.since + held.job.limit for held in self.held.values() if held.job.limit is not None]
        due = min((each for each in (*limits, *self._down.values()) if each > at), default=None)
        return Turn(self._starts, stopped=tuple(self._stops), due=due)

    def is_down(self, node: str) -> bool:
        """Does it take nothing new?"""
        return node in self._down

    def usable(self) -> Free:
        """Free GPUs by node, none where it is down."""
        return {**self.free, **dict.fromkeys(self._down, 0)} if self._down else self.free

    def money(self, job: Job, *, of_all: bool = False) -> int:
        """GPUs that its cohort has left, or has in all."""
        pool = self.facts.pool(job)
        return self.facts.shared[pool] - (0 if of_all else self.cohort_used[pool])

    def start(self, job: Job, at: int, placed: Placed) -> None:
        """Take it off the queue and start it."""
        self.queue.remove(job)
        self._take(job, at, placed)
        self._starts[job.key] = frozenset(placed), job.gpus

    def stop(self, key: Key, why: str) -> None:
        """Put it back into the queue, at the place of its age."""
        job = self.held[key].job
        self._give(key)
        if self._starts.pop(key, None) is None:
            self._stops.append(Stop(key, "", why))
        self.queue.append(job)
        self.queue.sort(key=lambda each: (each.at, each.key))

    def _take(self, job: Job, since: int, placed: Placed) -> None:
        self.held[job.key] = Held(job, since, placed)
        self._count(job, placed, 1)

    def _give(self, key: Key) -> None:
        held = self.held.pop(key)
        self._count(held.job, held.placed, -1)

    def _count(self, job: Job, placed: Placed, sign: int) -> None:
        self.used[job.owner, job.flavor] += sign * job.gpus
        self.cohort_used[self.facts.pool(job)] += sign * job.gpus
        for node, gpus in placed.items():
            self.free[node] -= sign * gpus
