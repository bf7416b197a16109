"""Segments that a plan adds to the ledgers of open leases: a segment wherever class or rate changed (spec §3.6)."""

from collections.abc import Iterator

from jobtree.world.naming.named import GONE_PAYER
from jobtree.world.plan import Segment
from planner.state.replay import Said, Turn, said_of
from planner.state.state import State
from policies.funding.usage import Classes
from policies.inputs.claims import UNFUNDED, LeaseKey, LeaseRow


def segments(state: State, classes: Classes) -> list[Segment]:
    """The turns since the last cycle, and those of this very second. ``classes``: of open leases after the plan."""
    found: dict[LeaseKey, list[Turn]] = {key: list(turns) for key, turns in state.turns.items()}
    for lease in (lease for lease in state.open_leases if lease.key not in state.swaps):
        for said in _now(state, classes, lease):
            if said != said_of(lease):
                found.setdefault(lease.key, []).append(Turn(state.at, said))
    return [
        Segment(
            namespace=key[0],
            name=key[1],
            funding_class=turn.said.funding_class,
            since=turn.since,
            rate_milli=turn.said.rate or None,
        )
        for key in sorted(found)
        for turn in found[key]
    ]


def _now(state: State, classes: Classes, lease: LeaseRow) -> Iterator[Said]:
    """Segment of a lease from now on; nothing where a Budget pays that cannot be read.

    Nor where nobody pays, unless its ledger, which a hand wrote, says that somebody does.
    """
    funding_class = classes[lease.key]
    if funding_class == UNFUNDED and (lease.budget or lease.funding_class != UNFUNDED):
        yield Said(UNFUNDED, 0)
    elif funding_class != UNFUNDED and lease.envelope != GONE_PAYER:
        yield Said(funding_class, state.money.rate_milli(lease.envelope))
