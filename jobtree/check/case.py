"""The case before the checker: a snapshot, a plan, and what the plan leaves behind.

Everything here is bookkeeping; rules are in the other modules.
"""

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property

from jobtree.api.lease import Lease
from jobtree.api.run import RunStatus, derived_phase
from jobtree.api.scalars import exact
from jobtree.check.moment import Moment
from jobtree.check.rows import Held, LeaseKey, Rows, Run, RunKey, by_run
from jobtree.world.given import given_of
from jobtree.world.plan import Plan, Segment
from jobtree.world.snapshot import Snapshot


class Unplanned(Moment):
    """A snapshot at ``at``, under its own Budgets, before there is a plan."""

    def __init__(self, snapshot: Snapshot, rows: Rows, at: int) -> None:
        super().__init__(at, rows, rows.budgets, rows.envelopes, rows.aggregates)
        self.snapshot = snapshot
        self.rows = rows
        self.policy = snapshot.policy.spec
        self.pods = rows.pods
        self.budgets = rows.budgets
        self.discount = int(exact(self.policy.spares.discount) * 1000)
        self.rates = {flavor: int(exact(rate) * 1000) for flavor, rate in self.policy.credit_rates.items()}


class Case(Unplanned):
    """``at``: the plan's time. ``held``: open leases that the plan leaves open; ``new``: those that it creates."""

    def __init__(self, snapshot: Snapshot, rows: Rows, plan: Plan) -> None:
        super().__init__(snapshot, rows, plan.at)
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
        self._started: dict[RunKey, int | None] = {}

    def is_of(self, lease: Held, run: Run) -> bool:
        """Whether a lease belongs to this very Run, not to an earlier one of its name."""
        return not run.uid or not lease.run_uid or run.uid == lease.run_uid

    def is_gone(self, lease: Held) -> bool:
        """Whether a lease's Run is no more; one that is quarantined is there, and only cannot be read."""
        run = self.run_of(lease.run_key)
        if run is None:
            return ("Run", *lease.run_key) not in self.quarantined
        return not self.is_of(lease, run)

    def may_be_unread(self, run: Run) -> bool:
        """Whether a Lease that may be the run's cannot be read: it names the run, or nobody and is named after it."""
        if not run.total or not self.rows.unread:
            return False
        mine = (each for each in self.rows.unread if each.namespace == run.namespace)
        return any(run.name in each.runs if each.runs else each.name.startswith(f"{run.name}-") for each in mine)

    def stands(self, run: Run) -> bool:
        """Whether a run that holds nothing runs on in what cannot be read: the plan leaves its status as it was."""
        if not self.may_be_unread(run) or run.key in self.updates:
            return False
        status = self.stored(run.key)
        held = run.key in self.open_by or run.key in self.new_by
        return status is not None and _runs(status) and not held

    def line(self, key: RunKey) -> list[Run]:
        """A run and the runs above it in its tree, as far as they are there."""
        found: list[Run] = []
        run = self.run_of(key)
        while run is not None and run not in found:
            found.append(run)
            run = self.runs.get((run.namespace, run.parent)) if run.parent else None
        return found

    @cached_property
    def held_by(self) -> Mapping[RunKey, list[Held]]:
        """Leases that stay open, by run."""
        return by_run(self.held)

    @cached_property
    def new_by(self) -> Mapping[RunKey, list[Held]]:
        """The plan's leases, by run."""
        return by_run(self.new)

    @property
    def open_by(self) -> Mapping[RunKey, list[Held]]:
        """Open leases of the snapshot, by run."""
        return self.rows.open_by

    @cached_property
    def pod_phases(self) -> Mapping[RunKey, set[str | None]]:
        """Phases of each run's own pods."""
        found: dict[RunKey, set[str | None]] = defaultdict(set)
        for pod in self.pods:
            if pod.run is not None:
                found[pod.namespace, pod.run].add(pod.phase)
        return dict(found)

    def pods_failed(self, run: RunKey) -> bool:
        """Whether some pod of a run failed, or found no place for long."""
        return not {"Failed", "Pending"}.isdisjoint(self.pod_phases.get(run, ()))

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
    def given(self) -> str:
        """Digest of what the cycle is given: all that none writes."""
        return given_of(self.snapshot, self.at)

    @cached_property
    def given_on(self) -> str:
        """Digest of what it leaves for the next one, if nothing changes."""
        return given_of(self.snapshot, self.at, self.closing) if self.closing else self.given

    @cached_property
    def changed(self) -> int:
        """When a cycle last saw the world change: it was given something else than the one before, or work ended."""
        if self.closing or any(self.ends(key) for key in self.updates):
            return self.at
        return min([*(seen.changed for seen in self.rows.seen.world if seen.given == self.given), self.at])

    def ends(self, key: RunKey) -> bool:
        """Whether the plan ends a run for good, be it one without leases."""
        run = self.run_of(key)
        return run is not None and run.outcome is None and self.phase_after(key) in ("Completed", "Failed")

    @cached_property
    def starting(self) -> frozenset[RunKey]:
        """Runs that get leases and neither keep any nor carry on from a spare."""
        swaps = [key for key, closure in self.closing.items() if closure.reason == "Swap" and key in self.leases]
        carried = {self.leases[key].run_key for key in swaps}
        return frozenset(key for key in self.new_by if key not in self.held_by and key not in carried)

    def stored(self, key: RunKey) -> RunStatus | None:
        """The status that a Run has in the snapshot; None where it has none yet."""
        return self.rows.statuses.get(key)

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

    def started(self, key: RunKey) -> int | None:
        """When a run that holds leases started: as its status says (swaps renew leases), else its oldest open lease."""
        if key not in self._started:
            oldest = min((lease.start for lease in self.open_by.get(key, ())), default=None)
            told = None if oldest is None else self.stored(key)
            if oldest is not None and told is not None and _runs(told) and told.started is not None:
                oldest = min(oldest, told.started)
            self._started[key] = oldest
        return self._started[key]

    def cpu_started(self, key: RunKey) -> int | None:
        """When a CPU run that runs started, as its status says; None of any other."""
        run, told = self.run_of(key), self.stored(key)
        return told.started if run is not None and run.total == 0 and told is not None and _runs(told) else None

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


def _runs(status: RunStatus) -> bool:
    """Whether its conditions say that a run runs; where that one is missing, the phase does."""
    return derived_phase(status.phase, {each.type: each.status == "True" for each in status.conditions}) == "Running"


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
            (each.class_, int(each.from_), each.to, None if each.rate is None else int(exact(each.rate) * 1000))
            for each in status.funding
        ),
    )
