"""The case before the checker: a snapshot, a plan, and what the plan leaves behind.

Everything here is bookkeeping; rules are in the other modules.
"""

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property

from jobtree.api.kinds.lease import Lease
from jobtree.api.kinds.run import OVER, RunStatus
from jobtree.api.values.scalars import milli
from jobtree.check.case.rows import Held, LeaseKey, Run, RunKey, by_run
from jobtree.check.case.unplanned import Told, Unplanned, is_running
from jobtree.world.plan import Plan, Segment
from jobtree.world.tables.given import any_due, given_of


class Case(Unplanned):
    """``held``: open leases that the plan leaves open; ``new``: those that it creates."""

    def __init__(self, told: Told, plan: Plan) -> None:
        """``told``: of the plan's snapshot, at the plan's time."""
        super().__init__(told.snapshot, told.rows, told.at)
        self.told = told
        self.plan = plan
        self.closing = {(each.namespace, each.name): each for each in plan.closures}
        self.open = [lease for lease in self.leases.values() if not lease.closed]
        self.held = [lease for lease in self.open if lease.key not in self.closing]
        self.new = [as_held(lease) for lease in plan.leases]
        appended: dict[LeaseKey, list[Segment]] = defaultdict(list)
        for segment in plan.segments:
            appended[segment.namespace, segment.name].append(segment)
        self.appended = appended
        self._time_left: dict[RunKey, int | None] = {}

    def is_unfunded(self, lease: Held) -> bool:
        """Whether nobody pays for an open lease at the plan's time, by its ledger and what the plan adds to that."""
        added = self.appended.get(lease.key, ())
        return lease.payer is None or (added[-1].funding_class if added else lease.recorded_class) == "unfunded"

    def pods_failed(self, key: RunKey) -> bool:
        """Whether some pod of a run failed."""
        said = self.told.said.get(key)
        return said is not None and said.failed

    def pods_displaced(self, key: RunKey) -> bool:
        """Whether one was taken off its node, or found none for long."""
        said = self.told.said.get(key)
        return said is not None and said.stuck

    def pods_succeeded(self, key: RunKey) -> bool:
        """Whether all pods of a run did."""
        said = self.told.said.get(key)
        return said is not None and said.succeeded

    def stands(self, run: Run) -> bool:
        """Whether a run that holds nothing runs on in what cannot be read: the plan leaves its status as it was."""
        if not self.may_be_unread(run) or run.key in self.updates:
            return False
        status = self.stored(run.key)
        held = run.key in self.open_by or run.key in self.new_by
        return status is not None and is_running(status) and not held

    @cached_property
    def held_by(self) -> Mapping[RunKey, list[Held]]:
        """Leases that stay open, by run."""
        return by_run(self.held)

    @cached_property
    def new_by(self) -> Mapping[RunKey, list[Held]]:
        """The plan's leases, by run."""
        return by_run(self.new)

    @cached_property
    def unfinished(self) -> set[RunKey]:
        """Runs whose last lease is open, or was not closed as Completed; leases outlive their run."""
        last: dict[RunKey, tuple[bool, int, bool]] = {}
        for lease in self.leases.values():
            end = lease.ended is None, lease.ended or 0, lease.closure_reason == "Completed"
            last[lease.run_key] = max(end, last.get(lease.run_key, end))
        return {key for key, (*_, completed) in last.items() if not completed}

    @cached_property
    def completed_once(self) -> set[RunKey]:
        """Runs with leases closed as Completed, which outlive their run."""
        return {lease.run_key for lease in self.leases.values() if lease.closure_reason == "Completed"}

    @cached_property
    def namespaces(self) -> Mapping[str, set[str]]:
        """By owner, what its Budgets list."""
        found: dict[str, set[str]] = defaultdict(set)
        for budget in self.budgets:
            found[budget.owner].update(budget.namespaces or ())
        return found

    def after(self, run: RunKey) -> list[Held]:
        """What a run holds once the plan is carried out."""
        held, new = self.held_by.get(run, []), self.new_by.get(run, [])
        return [*held, *new] if held and new else held or new

    @cached_property
    def touched(self) -> list[RunKey]:
        """Runs whose leases the plan opens or closes, in order."""
        closed = {self.leases[key].run_key for key in self.closing if key in self.leases}
        return sorted(closed | set(self.new_by))

    @cached_property
    def given_on(self) -> str:
        """Digest of what it leaves for the next one, if nothing changes."""
        if not self.closing and not self.new:
            return self.told.given
        return given_of(self.snapshot, self.at, self.closing, [lease.key for lease in self.new])

    @cached_property
    def changed(self) -> int:
        """When a cycle last saw the world change: it was given something else than the one before, or work ended."""
        if self.closing or any_due(self.snapshot, self.at) or any(self.ends(key) for key in self.updates):
            return self.at
        return min([*(seen.changed for seen in self.rows.seen.world if seen.given == self.told.given), self.at])

    def ends(self, key: RunKey) -> bool:
        """Whether the plan ends a run for good, be it one without leases."""
        run = self.run_of(key)
        return run is not None and run.outcome is None and self.phase_after(key) in OVER

    @cached_property
    def starting(self) -> frozenset[RunKey]:
        """Runs that get leases and neither keep any nor carry on from a spare."""
        swaps = [key for key, closure in self.closing.items() if closure.reason == "Swap" and key in self.leases]
        carried = {self.leases[key].run_key for key in swaps}
        return frozenset(key for key in self.new_by if key not in self.held_by and key not in carried)

    @cached_property
    def updates(self) -> Mapping[RunKey, RunStatus]:
        """New statuses by run."""
        return {(each.namespace, each.name): each.status for each in self.plan.runs}

    def status_after(self, key: RunKey) -> RunStatus | None:
        """The status that a Run has once the plan is carried out."""
        return self.updates.get(key) or self.stored(key)

    def phase_after(self, key: RunKey) -> str | None:
        """The phase in it."""
        status = self.status_after(key)
        return None if status is None else status.phase

    def begins(self, key: RunKey) -> bool:
        """Whether it runs once the plan is carried out, and by its status did not before."""
        before = self.stored(key)
        return self.phase_after(key) == "Running" and (before is None or before.phase != "Running")

    def limit(self, key: RunKey) -> int | None:
        """The enforced time limit in seconds (spec §1 perRun.defaultTime): its own, or its payers' smallest default."""
        run = self.run_of(key)
        if run is None or run.time_limit is not None:
            return None if run is None else run.time_limit
        if key not in self.starting:
            return run.enforced_limit
        payers = {self.envelopes[each.payer] for each in self.new_by.get(key, ()) if each.payer in self.envelopes}
        defaults = (payer.per_run_default_time for payer in payers)
        return min((default for default in defaults if default is not None), default=None)

    def time_left(self, key: RunKey) -> int | None:
        """Seconds until the enforced limit ends the run; None where there is none."""
        if key not in self._time_left:
            limit = self.limit(key)
            started = self.at if key in self.starting else self.started(key)
            left = None if limit is None or started is None else max(0, started + limit - self.at)
            self._time_left[key] = left
        return self._time_left[key]

    @cached_property
    def without_lease(self) -> dict[str, int]:
        """GPUs per node of bound pods beyond what the leases of their runs cover: foreign pods, and pods still ending.

        Of a life that is over no lease covers any, but one that ends on slots of a swap: its pods wait for them.
        Where a Run or Lease cannot be read, nobody knows whose life it is.
        """
        leased: dict[tuple[str, str, str], int] = defaultdict(int)
        swapped = {slot for new in self.new if new.reason == "Swap" for slot in new.slots}
        ending = (lease for lease in self.open if lease.key in self.closing and not swapped.isdisjoint(lease.slots))
        for lease in (*self.held, *ending):
            if lease.active:
                leased[lease.namespace, lease.run, lease.node] += lease.gpus
        unknown = {key for key in leased if ("Run", *key[:2]) in self.quarantined}
        for each in self.rows.unread:
            for run in each.runs:
                for node, _ in each.slots:
                    leased[each.namespace, run, node] += 1
                    unknown.add((each.namespace, run, node))
        serving = {(pod.namespace, pod.name) for pods in self.told.speaking.values() for pod in pods}
        ours: dict[tuple[str, str, str], int] = defaultdict(int)
        found: dict[str, int] = defaultdict(int)
        for pod in self.pods:
            if pod.node is None or pod.ended:
                continue
            key = (pod.namespace, pod.run or "", pod.node)
            if key in unknown or (pod.namespace, pod.name) in serving:
                ours[key] += pod.gpus
            else:
                found[pod.node] += pod.gpus
        for key, gpus in ours.items():
            found[key[2]] += max(0, gpus - leased[key])
        return found


def split_slot(slot: str) -> tuple[str, int] | None:
    """Node and ordinal of ``node#ordinal``; None for anything else."""
    node, _, ordinal = slot.rpartition("#")
    return (node, int(ordinal)) if node and ordinal.isascii() and ordinal.isdecimal() else None


def as_held(lease: Lease) -> Held:
    """A lease of the plan as the snapshot would show it."""
    spec, status = lease.spec, lease.status
    slots = [slot for text in spec.slice.nodes if (slot := split_slot(text)) is not None]
    return Held(
        namespace=lease.namespace,
        name=lease.name,
        run=spec.run_ref.run_name,
        run_uid=spec.run_uid,
        owner=str(spec.owner),
        run_owner=str(spec.run_owner),
        flavor=spec.flavor,
        group=spec.group,
        node=slots[0][0] if slots else "",
        node_uid=spec.slice.node_uid or None,
        ordinals=tuple(ordinal for _, ordinal in slots),
        role=spec.slice.role,
        start=int(spec.interval.start),
        budget=spec.paid_by.budget if spec.paid_by else None,
        envelope=spec.paid_by.envelope if spec.paid_by else None,
        reason=spec.reason,
        closed=status.closed,
        ended=status.ended,
        closure_reason=status.closure_reason,
        funding=tuple(
            (each.class_, int(each.from_), each.to, None if each.rate is None else milli(each.rate))
            for each in status.funding
        ),
    )
