"""The case before there is a plan: all that a snapshot alone tells, each thing worked out once.

Everything here is bookkeeping; rules are in the other modules.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from jobtree.api.kinds.run import RunStatus, derived_phase
from jobtree.api.values.scalars import milli
from jobtree.check.case.moment import Moment
from jobtree.check.case.rows import Held, Pod, Run, RunKey
from jobtree.check.case.tables import Rows
from jobtree.world.tables.snapshot import Snapshot


class Said(NamedTuple):
    """``failed``: some pod did, ``stuck``: one was evicted, or has had no node for long; ``succeeded``: all that the
    run has did.
    """

    failed: bool
    stuck: bool
    succeeded: bool


@dataclass(frozen=True, slots=True)
class Told:
    """What a snapshot tells at Unix second ``at``, whatever is planned: all that the checks of two plans share.

    ``given``: digest of what the cycle is given, all that none writes. Of each run that holds open leases: ``over``,
    why these must not stay open, empty where they may (`closures.over`), and ``lacking``, whether they are less than
    the run needs (`shape.lacks`). ``said``: what pods say, of runs for which any speak; ``speaking``: these pods.
    """

    snapshot: Snapshot
    rows: Rows
    at: int
    given: str
    over: Mapping[RunKey, str]
    lacking: Mapping[RunKey, bool]
    said: Mapping[RunKey, Said]
    speaking: Mapping[RunKey, list[Pod]]


class Unplanned(Moment):
    """A snapshot at Unix second ``at``, under its own Budgets, before there is a plan."""

    def __init__(self, snapshot: Snapshot, rows: Rows, at: int) -> None:
        super().__init__(at, rows, rows.budgets, rows.envelopes, rows.aggregates, rows.use_caps)
        self.snapshot = snapshot
        self.rows = rows
        self.policy = snapshot.policy.spec
        self.pods = rows.pods
        self.budgets = rows.budgets
        self.discount = milli(self.policy.spares.discount)
        self.rates = {flavor: milli(rate) for flavor, rate in self.policy.credit_rates.items()}
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

    def line(self, key: RunKey) -> list[Run]:
        """A run and the runs above it in its tree, as far as they are there."""
        found: dict[RunKey, Run] = {}
        run = self.run_of(key)
        while run is not None and run.key not in found:
            found[run.key] = run
            run = self.runs.get((run.namespace, run.parent)) if run.parent else None
        return [*found.values()]

    @property
    def open_by(self) -> Mapping[RunKey, list[Held]]:
        """Open leases of the snapshot, by run."""
        return self.rows.open_by

    def stored(self, key: RunKey) -> RunStatus | None:
        """The status that a Run has in the snapshot; None where it has none yet."""
        return self.rows.statuses.get(key)

    def started(self, key: RunKey) -> int | None:
        """When a run that holds leases started: as its status says (swaps renew leases), else its oldest open lease."""
        if key not in self._started:
            oldest = min((lease.start for lease in self.open_by.get(key, ())), default=None)
            told = None if oldest is None else self.stored(key)
            if oldest is not None and told is not None and is_running(told) and told.started is not None:
                oldest = min(oldest, told.started)
            self._started[key] = oldest
        return self._started[key]

    def cpu_started(self, key: RunKey) -> int | None:
        """When a CPU run that runs started, as its status says; None of any other."""
        run, told = self.run_of(key), self.stored(key)
        return told.started if run is not None and run.total == 0 and told is not None and is_running(told) else None


def is_running(status: RunStatus) -> bool:
    """Whether its conditions say that a run runs; where that one is missing, the phase does."""
    return derived_phase(status.phase, {each.type: each.status == "True" for each in status.conditions}) == "Running"
