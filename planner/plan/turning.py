"""Runs that lose payers, and that get them back, as the plan's segments tell it (spec §3.5)."""

from collections.abc import Iterable, Iterator, Mapping

from jobtree.world.naming.payments import Flip, Part, flips, messages
from jobtree.world.plan import PayerTurn, Segment
from planner.state.state import State
from policies.inputs.claims import UNFUNDED, LeaseKey, LeaseRow, RunKey


def turns(state: State, segments: Iterable[Segment], unpaid: Mapping[RunKey, str]) -> list[PayerTurn]:
    """What turns of each run, in (run, time) order; ``unpaid``: what is said of runs that hold unfunded GPUs then."""
    added: dict[LeaseKey, list[Flip]] = {}
    for each in segments:
        flip = Flip(each.since, each.funding_class != UNFUNDED)
        added.setdefault((each.namespace, each.name), []).append(flip)
    parts: dict[RunKey, dict[Flip, list[Part]]] = {}
    for lease in (lease for lease in state.leases if lease.key in added):
        for flip in flips([*_before(state, lease), *added[lease.key]]):
            part = Part(f"{lease.budget}/{lease.envelope_name}", lease.gpus, lease.active)
            parts.setdefault(lease.run_key, {}).setdefault(flip, []).append(part)
    return [
        PayerTurn(namespace=key[0], name=key[1], since=flip.since, paid=flip.paid, message=message)
        for key, mine in sorted(parts.items())
        for flip, message in sorted(messages(mine, unpaid.get(key, "")))
    ]


def _before(state: State, lease: LeaseRow) -> Iterator[Flip]:
    """The last segment of a lease's ledger as the last cycle left it; the seconds since are replayed in it already."""
    known = len(lease.segments) - len(state.turns.get(lease.key, ()))
    yield from (Flip(since, name != UNFUNDED) for name, since, *_ in lease.segments[:known][-1:])
