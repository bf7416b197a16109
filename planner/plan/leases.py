"""From a draft to leases: every slot of a start, cut by node, group, role and payer (spec §1 Lease), as rows, and of
these the objects.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from jobtree.api.kinds.lease import (
    FINALIZER,
    FundingClass,
    Interval,
    Lease,
    LeaseReason,
    LeaseSpec,
    LeaseStatus,
    Segment,
    Slice,
)
from jobtree.api.kinds.meta import EnvelopeRef, ObjectMeta, RunRef
from jobtree.api.values.scalars import OwnerPath, Time
from jobtree.world.naming.named import NOBODY
from planner.placement.draft import Draft
from planner.placement.place import Piece, by_candidate
from planner.placement.room import Room
from policies.funding.usage import plain
from policies.inputs.claims import ACTIVE, SPARE, UNFUNDED, LeaseRow, RunKey, class_name, is_loan
from policies.inputs.fleet import Fleet
from policies.inputs.money import Money
from policies.inputs.runs import RunRow
from policies.model.problem import Problem


@dataclass(frozen=True, slots=True)
class Part:
    """Slots of one node for one group and role. ``ordinals``: lowest free first."""

    group: int
    node: int
    ordinals: tuple[int, ...]
    active: bool


def new_leases(
    problem: Problem, room: Room, draft: Draft, cycle: str, numbers: dict[tuple[RunKey, int], int] | None = None
) -> list[LeaseRow]:
    """Leases of all starts, in (namespace, name) order; the ledger of each is its class now.

    ``numbers``: by run and group, how many leases of this cycle there are already; counted on.
    """
    numbers = {} if numbers is None else numbers
    slots = {chunk.node: list(room.slots[chunk.node]) for piece in draft.pieces for chunk in piece.chunks}
    pieces = by_candidate(draft.pieces)
    found: list[LeaseRow] = []
    for start in sorted(draft.starts, key=lambda s: problem.candidates[s.candidate].run.key):
        run = problem.candidates[start.candidate].run
        parts = [part for piece in pieces[start.candidate] for part in _parts(slots, piece)]
        for part, envelope in _paid(problem, room, start.candidate, sorted(parts, key=_part_order), draft):
            index = numbers.get((run.key, part.group), 0)
            numbers[run.key, part.group] = index + 1
            name = f"{run.name}-{cycle.lower()}-g{part.group}-{index}"
            found.append(_row(problem.book.money, room.fleet, run, part, envelope, name))
    return sorted(found, key=lambda lease: lease.key)


def _part_order(part: Part) -> tuple[int, bool, int]:
    return part.group, not part.active, part.node


def _parts(slots: dict[int, list[int]], piece: Piece) -> Iterator[Part]:
    for chunk in piece.chunks:
        ordinals = tuple(slots[chunk.node].pop() for _ in range(chunk.count))
        yield Part(chunk.group, chunk.node, ordinals, chunk.active)


def _paid(problem: Problem, room: Room, candidate: int, parts: list[Part], draft: Draft) -> Iterator[tuple[Part, int]]:
    """A part per lease, and its payer: they are used up nearest first along the parts."""
    left = {key: dict(payments) for key, payments in draft.paid.get(candidate, {}).items()}
    unfunded, region = problem.type_of(candidate).unfunded, problem.book.money.region
    for part in parts:
        queue = {NOBODY: len(part.ordinals)} if unfunded else left[part.active, region[int(room.fleet.site[part.node])]]
        rest = part.ordinals
        while rest:
            envelope = next(e for e, gpus in queue.items() if gpus)
            here = min(len(rest), queue[envelope])
            queue[envelope] -= here
            paid, rest = replace(part, ordinals=rest[:here]), rest[here:]
            yield paid, envelope


def _row(money: Money, fleet: Fleet, run: RunRow, part: Part, envelope: int, name: str) -> LeaseRow:
    """Row of a lease that opens now."""
    payer = None
    called: FundingClass = UNFUNDED
    if envelope != NOBODY:
        payer = money.envelopes[envelope]
        called = class_name(money, envelope, run.owner, is_loan(money, envelope, run.owner))
    return LeaseRow(
        namespace=run.namespace,
        name=name,
        run=run.name,
        run_uid=run.uid,
        owner=payer.owner if payer else run.owner,
        run_owner=run.owner,
        flavor=run.flavor,
        group=part.group,
        node=fleet.names[part.node],
        node_uid=fleet.uids[part.node],
        ordinals=part.ordinals,
        active=part.active,
        start=money.at,
        budget=payer.budget if payer else "",
        envelope_name=payer.name if payer else "",
        envelope=envelope,
        closed=False,
        ended=None,
        segments=((called, money.at, None, None),),
    )


def lease_of(row: LeaseRow, name: FundingClass, ref: RunRef, reason: LeaseReason, cycle: str, money: Money) -> Lease:
    """Object of a lease that opens now for the run of ``ref``, of that class, with a rate where its flavor has one."""
    rate = 0 if name == UNFUNDED else money.rate_milli(row.envelope)
    at = Time(row.start)
    return Lease(
        metadata=ObjectMeta(name=row.name, namespace=row.namespace, creation_timestamp=at, finalizers=(FINALIZER,)),
        spec=LeaseSpec(
            owner=OwnerPath(row.owner),
            run_ref=ref,
            run_uid=row.run_uid,
            run_owner=OwnerPath(row.run_owner),
            flavor=row.flavor,
            group=row.group,
            slice=Slice(
                nodes=tuple(f"{row.node}#{slot}" for slot in row.ordinals),
                node_uid=row.node_uid,
                role=ACTIVE if row.active else SPARE,
            ),
            interval=Interval(start=at),
            reason=reason,
            cycle=cycle,
            paid_by=EnvelopeRef(budget=row.budget, envelope=row.envelope_name) if row.budget else None,
        ),
        status=LeaseStatus(
            closed=False, funding=(Segment(class_=name, from_=at, rate=plain(rate, 1000) if rate else None),)
        ),
    )
