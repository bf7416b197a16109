"""From a draft to Lease objects: every slot of a start, cut by node, group, role and payer (spec §1 Lease)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

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
from planner.placement.draft import Draft
from planner.placement.place import Piece
from planner.placement.room import Room
from policies.funding.usage import plain
from policies.inputs.claims import ACTIVE, SPARE, UNFUNDED, LeaseRow, RunKey, class_name, is_loan
from policies.inputs.money import Money
from policies.model.problem import Problem


@dataclass(frozen=True, slots=True)
class Part:
    """Slots of one node for one group and role. ``ordinals``: lowest free first."""

    group: int
    node: int
    ordinals: tuple[int, ...]
    active: bool


def new_leases(
    problem: Problem,
    room: Room,
    draft: Draft,
    cycle: str,
    *,
    reason: LeaseReason = "Start",
    numbers: dict[tuple[RunKey, int], int] | None = None,
) -> list[Lease]:
    """Leases of all starts, in (namespace, name) order.

    ``numbers``: by run and group, how many leases of this cycle there are already; counted on.
    """
    numbers = {} if numbers is None else numbers
    slots = {chunk.node: list(room.slots[chunk.node]) for piece in draft.pieces for chunk in piece.chunks}
    pieces: dict[int, list[Piece]] = {}
    for piece in draft.pieces:
        pieces.setdefault(piece.candidate, []).append(piece)
    found: list[Lease] = []
    for start in sorted(draft.starts, key=lambda s: problem.candidates[s.candidate].run.key):
        parts = [part for piece in pieces[start.candidate] for part in _parts(slots, piece)]
        found += _leases(
            problem, room, start.candidate, sorted(parts, key=_part_order), draft, _Name(cycle, reason, numbers)
        )
    return sorted(found, key=lambda lease: (lease.namespace, lease.name))


def _part_order(part: Part) -> tuple[int, bool, int]:
    return part.group, not part.active, part.node


def _parts(slots: dict[int, list[int]], piece: Piece) -> Iterator[Part]:
    for chunk in piece.chunks:
        ordinals = tuple(slots[chunk.node].pop() for _ in range(chunk.count))
        yield Part(chunk.group, chunk.node, ordinals, chunk.active)


class _Name(NamedTuple):
    """What all leases of one cycle and reason have in common."""

    cycle: str
    reason: LeaseReason
    numbers: dict[tuple[RunKey, int], int]


def _leases(
    problem: Problem, room: Room, candidate: int, parts: list[Part], draft: Draft, name: _Name
) -> Iterator[Lease]:
    """One lease per part and payer; payers are used up nearest first along the parts."""
    left = {key: dict(payments) for key, payments in draft.paid.get(candidate, {}).items()}
    unfunded = problem.type_of(candidate).unfunded
    money, run = problem.book.money, problem.candidates[candidate].run
    for part in parts:
        queue = (
            {-1: len(part.ordinals)} if unfunded else left[part.active, money.region[int(room.fleet.site[part.node])]]
        )
        rest = part.ordinals
        while rest:
            envelope = next(e for e, gpus in queue.items() if gpus)
            here = min(len(rest), queue[envelope])
            queue[envelope] -= here
            paid, rest = replace(part, ordinals=rest[:here]), rest[here:]
            index = name.numbers.get((run.key, part.group), 0)
            name.numbers[run.key, part.group] = index + 1
            own = f"{run.name}-{name.cycle.lower()}-g{part.group}-{index}"
            row = _row(problem, room, candidate, paid, envelope, own)
            yield _lease(row, run.ref, name.reason, name.cycle, _first_segment(money, envelope, run.owner))


def _row(problem: Problem, room: Room, candidate: int, part: Part, envelope: int, name: str) -> LeaseRow:
    """The row of a lease that opens now, without its ledger."""
    run, money = problem.candidates[candidate].run, problem.book.money
    payer = money.envelopes[envelope] if envelope >= 0 else None
    return LeaseRow(
        namespace=run.namespace,
        name=name,
        run=run.name,
        run_uid=run.uid,
        owner=payer.owner if payer else run.owner,
        run_owner=run.owner,
        flavor=run.flavor,
        group=part.group,
        node=room.fleet.names[part.node],
        node_uid=room.fleet.uids[part.node],
        ordinals=part.ordinals,
        active=part.active,
        start=money.at,
        budget=payer.budget if payer else "",
        envelope_name=payer.name if payer else "",
        envelope=envelope,
        closed=False,
        ended=None,
        segments=(),
    )


def carried_on(row: LeaseRow, ref: RunRef, name: FundingClass, money: Money, cycle: str) -> Lease:
    """The lease that a swap opens for the run of ``ref``, of that class."""
    rate = money.rate_milli(row.envelope) if name != UNFUNDED else 0
    return _lease(row, ref, "Swap", cycle, _segment(name, row.start, rate))


def _lease(row: LeaseRow, ref: RunRef, reason: LeaseReason, cycle: str, segment: Segment) -> Lease:
    """The object of a row whose ledger begins with ``segment``."""
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
        status=LeaseStatus(closed=False, funding=(segment,)),
    )


def _first_segment(money: Money, envelope: int, run_owner: str) -> Segment:
    """The ledger's first entry: the class at the start, and the credit rate where the flavor has one."""
    if envelope < 0:
        return _segment(UNFUNDED, money.at, 0)
    name: FundingClass = class_name(money, envelope, run_owner, is_loan(money, envelope, run_owner))
    return _segment(name, money.at, money.rate_milli(envelope))


def _segment(name: FundingClass, at: int, rate_milli: int) -> Segment:
    return Segment(class_=name, from_=Time(at), rate=plain(rate_milli, 1000) if rate_milli else None)
