"""Plans by hand, of leases on one node."""

from typing import Any, Literal

from jobtree.api import Lease, Time
from jobtree.api.kinds.lease import Interval, LeaseSpec, LeaseStatus, Segment, Slice
from jobtree.api.kinds.meta import EnvelopeRef, ObjectMeta, RunRef
from jobtree.api.kinds.run import RunStatus
from jobtree.api.values.scalars import OwnerPath
from jobtree.world.plan import Closure, Plan, RunUpdate, Solver

AT = 1_767_225_600
OWNER = OwnerPath("org:a")


def plan(**more: Any) -> Plan:
    solver = Solver(name="", version="", options={})
    return Plan(jobtree="0", at=AT, cycle="c", snapshot="", policy="", solver=solver, **more)


def lease(
    name: str, *ordinals: int, run: str = "r", role: Literal["Active", "Spare"] = "Active", funded: bool = True
) -> Lease:
    spec = LeaseSpec(
        owner=OWNER, run_ref=RunRef(name=run, namespace="default"), run_uid="u", run_owner=OWNER, flavor="H100",
        group=0, slice=Slice(nodes=tuple(f"n1#{each}" for each in ordinals), role=role),
        interval=Interval(start=Time(AT)), reason="Start",
        paid_by=EnvelopeRef(budget="a", envelope="quota") if funded else None,
    )  # fmt: skip
    ledger = (Segment(class_="owned" if funded else "unfunded", from_=Time(AT)),)
    return Lease(metadata=ObjectMeta(name=name, namespace="default"), spec=spec, status=LeaseStatus(funding=ledger))


def closure(name: str) -> Closure:
    return Closure(namespace="default", name=name, ended=AT, reason="Completed")


def ended(run: str) -> RunUpdate:
    return RunUpdate(namespace="default", name=run, status=RunStatus(phase="Completed"))
