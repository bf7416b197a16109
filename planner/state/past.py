"""The last cycle as this one knows it: when it was, and which Budgets it saw (spec §3.6)."""

from collections.abc import Iterable
from dataclasses import replace

from jobtree.world.tables.snapshot import Snapshot
from planner.state.replay import Past
from policies.inputs.claims import LeaseRow
from policies.inputs.fleet import Fleet
from policies.inputs.money import Money
from policies.inputs.seen import read_seen_money

_LOST = "the record of the Budgets as the last cycle saw them is lost"


def past_of(snapshot: Snapshot, fleet: Fleet, money: Money, leases: list[LeaseRow]) -> tuple[Past | None, str]:
    """The last cycle, None where no second lies in between; and a warning where the Budgets of now stand for its own.

    Without a Plan that was carried out, the last second that any ledger tells of is that of the last cycle, under the
    Budgets of now: before a first cycle there are no others (where its Plan was lost, the intake has said so).
    """
    since = snapshot.since if snapshot.since is not None else _last_told(leases, money.at)
    if since is None or money.at - since < 2:
        return None, ""
    seen = None if snapshot.since is None else read_seen_money(snapshot.tables, money.policy, fleet, since)
    if seen is not None:
        return Past(since, seen), ""
    lost = snapshot.since is not None and any(not lease.closed and lease.budget for lease in leases)
    words = f"{_LOST}: what ran since then is charged under the Budgets as they are now" if lost else ""
    return Past(since, replace(money, at=since)), words


def _last_told(leases: Iterable[LeaseRow], at: int) -> int | None:
    """The last second, not after ``at``, of which a lease's ledger tells."""
    times = (
        when
        for lease in leases
        for when in (
            lease.start, lease.ended, *(edge for _, since, until, _ in lease.segments for edge in (since, until))
        )
    )  # fmt: skip
    return max((when for when in times if when is not None and when <= at), default=None)
