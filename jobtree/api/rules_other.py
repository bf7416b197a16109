"""The rules of Lease, Reservation, Plan and Policy that their types cannot say (spec §1)."""

from __future__ import annotations

import re
from typing import Final

from jobtree.api.base import MAX_AMOUNT
from jobtree.api.errors import Refusal, missing, wrong
from jobtree.api.lease import Lease, LeaseStatus
from jobtree.api.policy import POLICY_NAME, Policy, PolicySpec
from jobtree.api.reservation import Reservation
from jobtree.api.scalars import exact

#: Slots of one node, joined by commas.
_SLOTS: Final = re.compile(r"([^#,]+)#(?:0|[1-9][0-9]{0,2})(?:,\1#(?:0|[1-9][0-9]{0,2}))*", re.ASCII)


def check_lease(lease: Lease) -> list[str]:
    """Checks one Lease: slots of one node, each once; its end and its ledger. Raises Refusal."""
    spec = lease.spec
    slots = spec.slice.nodes
    if not _SLOTS.fullmatch(",".join(slots)) or len(set(slots)) != len(slots):
        raise _slot_problem(slots)
    if spec.paid_by is None and spec.owner != spec.run_owner:
        raise wrong("spec.owner", spec.owner, f"spec.runOwner, {spec.run_owner}, where nobody pays")
    _check_end(lease.status, spec.interval.start)
    return []


def _slot_problem(slots: tuple[str, ...]) -> Refusal:
    """What is wrong with the first bad slot."""
    node = slots[0].partition("#")[0]
    for index, slot in enumerate(slots):
        field = f"spec.slice.nodes[{index}]"
        if not _SLOTS.fullmatch(slot):
            return wrong(field, slot, "a slot such as n07#3: a node's name, # and a number from 0 to 999")
        if slot.partition("#")[0] != node:
            return wrong(field, slot, f"a slot of {node}, since a lease never spans two nodes")
        if slot in slots[:index]:
            return wrong(field, slot, "each slot once, and it is listed twice")
    raise AssertionError(f"nothing is wrong with {slots}")


def _check_end(status: LeaseStatus, start: int) -> None:
    if status.closed:
        if status.ended is None:
            raise missing("status.ended", "a time, since the lease is closed")
        if status.ended < start:
            raise wrong("status.ended", status.ended, "a time at or after spec.interval.start")
        if status.closure_reason is None:
            raise missing("status.closureReason", "a reason, since the lease is closed")
    elif status.ended is not None:
        raise wrong("status.ended", status.ended, "nothing while the lease is open")
    elif status.closure_reason is not None:
        raise wrong("status.closureReason", status.closure_reason, "nothing while the lease is open")
    last = start
    for index, segment in enumerate(status.funding):
        if segment.from_ < last:
            raise wrong(f"status.funding[{index}].from", segment.from_, "a time at or after what comes before it")
        if segment.to is None and index < len(status.funding) - 1:
            raise missing(f"status.funding[{index}].to", "a time, since another segment follows")
        if segment.rate is not None and not 0 <= segment.rate <= MAX_AMOUNT:
            raise wrong(f"status.funding[{index}].rate", segment.rate, f"a number from 0 to {MAX_AMOUNT}")
        last = segment.from_ if segment.to is None else segment.to
        if last < segment.from_:
            raise wrong(f"status.funding[{index}].to", segment.to, "a time at or after its from")


def check_reservation(reservation: Reservation) -> list[str]:
    """Checks one Reservation. Raises Refusal."""
    intended = reservation.spec.intended_slice
    if not intended.domain and not intended.nodes:
        raise missing("spec.intendedSlice.domain", "domain, nodes or both")
    return []


def check_policy(policy: Policy) -> list[str]:
    """Checks one Policy. Raises Refusal."""
    spec = policy.spec
    if policy.metadata.name != POLICY_NAME:
        raise wrong("metadata.name", policy.metadata.name, f"{POLICY_NAME}, the one Policy that is read")
    if (exact(spec.spares.discount) * 1000).denominator != 1:
        raise wrong("spec.spares.discount", spec.spares.discount, "a number from 0 to 1 with at most 3 decimals")
    _check_stages(spec)
    for field, value in (
        ("accountingPeriod", spec.accounting_period),
        ("reservations.bucket", spec.reservations.bucket),
        ("age.unit", spec.age.unit),
        ("solver.deadline", spec.solver.deadline),
    ):
        if value == 0:
            raise wrong(f"spec.{field}", value, "a duration above 0s")
    for index, outage in enumerate(spec.maintenance):
        if outage.end <= outage.start:
            raise wrong(f"spec.maintenance[{index}].end", outage.end, f"a time after its start, {outage.start}")
    for index, name in enumerate(spec.resource_names):
        if name in spec.resource_names[:index]:
            raise wrong(f"spec.resourceNames[{index}]", name, "each resource once, and it is listed twice")
    return []


def _check_stages(spec: PolicySpec) -> None:
    for index, stage in enumerate(spec.stages):
        if stage in spec.stages[:index]:
            raise wrong(f"spec.stages[{index}]", stage, "each stage once, and it is listed twice")
    if "starts" not in spec.stages:
        raise wrong(
            "spec.stages", list(spec.stages), "a list with starts; only growth and opportunistic may be dropped"
        )
