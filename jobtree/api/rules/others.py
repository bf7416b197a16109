"""The rules of Lease, Reservation, Plan and Policy that their types cannot say (spec §1)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from jobtree.api.kinds.base import MAX_AMOUNT
from jobtree.api.kinds.lease import Lease, LeaseStatus
from jobtree.api.kinds.policy import POLICY_NAME, Policy, PolicySpec
from jobtree.api.kinds.reservation import Reservation
from jobtree.api.values.errors import Refusal, missing, wrong
from jobtree.api.values.escaped import is_plain
from jobtree.api.values.scalars import exact

#: Slots of one node, joined by commas.
_SLOTS: Final = re.compile(r"([^#,]+)#(?:0|[1-9][0-9]{0,2})(?:,\1#(?:0|[1-9][0-9]{0,2}))*", re.ASCII)


def lease_problems(lease: Lease) -> Iterator[Refusal]:
    """Faults of one Lease: slots of one node, each once; its end and its ledger."""
    spec = lease.spec
    slots = spec.slice.nodes
    text = ",".join(slots)
    if not _SLOTS.fullmatch(text) or not is_plain(text) or len(set(slots)) != len(slots):
        yield _slot_problem(slots)
    if spec.paid_by is None and spec.owner != spec.run_owner:
        yield wrong("spec.owner", spec.owner, f"spec.runOwner, {spec.run_owner}, where nobody pays")
    yield from _end_problems(lease.status, spec.interval.start)


def _slot_problem(slots: tuple[str, ...]) -> Refusal:
    """What is wrong with the first bad slot."""
    node = slots[0].partition("#")[0]
    for index, slot in enumerate(slots):
        field = f"spec.slice.nodes[{index}]"
        if not _SLOTS.fullmatch(slot) or not is_plain(slot):
            return wrong(field, slot, "a slot such as n07#3: a node's name, # and a number from 0 to 999")
        if slot.partition("#")[0] != node:
            return wrong(field, slot, f"a slot of {node}, since a lease never spans two nodes")
        if slot in slots[:index]:
            return wrong(field, slot, "each slot once, and it is listed twice")
    raise AssertionError(f"nothing is wrong with {slots}")


def _end_problems(status: LeaseStatus, start: int) -> Iterator[Refusal]:
    if status.closed:
        if status.ended is None:
            yield missing("status.ended", "a time, since the lease is closed")
        elif status.ended < start:
            yield wrong("status.ended", status.ended, "a time at or after spec.interval.start")
        if status.closure_reason is None:
            yield missing("status.closureReason", "a reason, since the lease is closed")
    elif status.ended is not None:
        yield wrong("status.ended", status.ended, "nothing while the lease is open")
    elif status.closure_reason is not None:
        yield wrong("status.closureReason", status.closure_reason, "nothing while the lease is open")
    last = start
    for index, segment in enumerate(status.funding):
        if segment.from_ < last:
            yield wrong(f"status.funding[{index}].from", segment.from_, "a time at or after what comes before it")
        if segment.to is None and index < len(status.funding) - 1:
            yield missing(f"status.funding[{index}].to", "a time, since another segment follows")
        if segment.rate is not None and not 0 <= segment.rate <= MAX_AMOUNT:
            yield wrong(f"status.funding[{index}].rate", segment.rate, f"a number from 0 to {MAX_AMOUNT}")
        last = segment.from_ if segment.to is None else segment.to
        if last < segment.from_:
            yield wrong(f"status.funding[{index}].to", segment.to, "a time at or after its from")


def reservation_problems(reservation: Reservation) -> Iterator[Refusal]:
    """Every fault of one Reservation."""
    intended = reservation.spec.intended_slice
    if not intended.domain and not intended.nodes:
        yield missing("spec.intendedSlice.domain", "domain, nodes or both")


def policy_problems(policy: Policy) -> Iterator[Refusal]:
    """Every fault of one Policy, in a fixed order."""
    spec = policy.spec
    if policy.metadata.name != POLICY_NAME:
        yield wrong("metadata.name", policy.metadata.name, f"{POLICY_NAME}, the one Policy that is read")
    if (exact(spec.spares.discount) * 1000).denominator != 1:
        yield wrong("spec.spares.discount", spec.spares.discount, "a number from 0 to 1 with at most 3 decimals")
    yield from _stage_problems(spec)
    for field, value in (
        ("accountingPeriod", spec.accounting_period),
        ("reservations.bucket", spec.reservations.bucket),
        ("age.unit", spec.age.unit),
        ("solver.deadline", spec.solver.deadline),
    ):
        if value == 0:
            yield wrong(f"spec.{field}", value, "a duration above 0s")
    for index, outage in enumerate(spec.maintenance):
        if outage.end <= outage.start:
            yield wrong(f"spec.maintenance[{index}].end", outage.end, f"a time after its start, {outage.start}")
    for index, name in enumerate(spec.resource_names):
        if name in spec.resource_names[:index]:
            yield wrong(f"spec.resourceNames[{index}]", name, "each resource once, and it is listed twice")


def _stage_problems(spec: PolicySpec) -> Iterator[Refusal]:
    for index, stage in enumerate(spec.stages):
        if stage in spec.stages[:index]:
            yield wrong(f"spec.stages[{index}]", stage, "each stage once, and it is listed twice")
    if "starts" not in spec.stages:
        yield wrong(
            "spec.stages", list(spec.stages), "a list with starts; only growth and opportunistic may be dropped"
        )
