"""The Plan object: one cycle's record in the cluster, what ``kubectl get plans`` shows (spec §1)."""

import math
from collections.abc import Mapping
from typing import Final

from exporters import planjson
from jobtree.api import ObjectMeta, Policy, Time
from jobtree.api import plan as api
from jobtree.world import seen
from jobtree.world.intake import Intake
from jobtree.world.plan import Plan

_TEXT_LIMIT: Final = 200
"""Most warnings that an object carries; the lake has them all."""
_PRICES: Final = 12
"""Most prices, likewise."""


def name_of(plan: Plan) -> str:
    """The object's name."""
    return plan.cycle.lower()


def record(intake: Intake, at: int) -> dict[str, str]:
    """What the cycle at ``at`` saw of the money, for the next one: the data of its ConfigMap."""
    return seen.record(intake.budgets, (intake.policy or Policy()).spec, intake.last_seen, at)


def build(intake: Intake, plan: Plan, encoded: bytes, money: Mapping[str, str]) -> api.Plan:
    """The object as it is written before anything else, in phase Planned.

    ``encoded``: the plan's canonical bytes; ``money``: what the cycle saw of it (`record`).
    """
    return api.Plan(
        metadata=ObjectMeta(name=name_of(plan), creation_timestamp=Time(plan.at)),
        spec=api.PlanSpec(
            at=Time(plan.at),
            snapshot=plan.snapshot,
            policy=plan.policy,
            version=plan.jobtree,
            solver=api.Solver(name=plan.solver.name, version=plan.solver.version, options=plan.solver.options),
            budgets=seen.digest_of(money),
            given=plan.given,
            changed=Time(plan.changed),
            details=(api.Detail(name="plan", sha256=planjson.digest_of(encoded)),),
        ),
        status=api.PlanStatus(
            phase="Planned",
            stages=tuple(_stage(plan, number) for number in range(len(plan.stages))),
            truncated=plan.truncated,
            prices=_prices(plan),
            warnings=tuple(
                api.PlanWarning(object=each.object, message=each.message) for each in plan.warnings[:_TEXT_LIMIT]
            ),
            counts=_counts(intake, plan),
        ),
    )


def _stage(plan: Plan, number: int) -> api.Stage:
    stage = plan.stages[number]
    if not stage.proven:
        return api.Stage(name=stage.name, status="placed", value=stage.value)
    status = "optimal" if stage.value == stage.bound else "feasible"
    gap = stage.gap if math.isfinite(stage.gap) else None
    return api.Stage(name=stage.name, status=status, value=stage.value, bound=stage.bound, gap=gap)


def _prices(plan: Plan) -> tuple[api.Price, ...]:
    if plan.prices is None:
        return ()
    return tuple(
        api.Price(
            rule=price.rule,
            subject=price.subjects[0],
            alike=len(price.subjects) - 1,
            domains=len(price.domains),
            unit=price.unit,
            gpus=price.milli_gpus / 1000,
            value=round(price.value / plan.prices.weight, 4),
        )
        for price in plan.prices.bounds[:_PRICES]
    )


def _counts(intake: Intake, plan: Plan) -> api.Counts:
    leases = {(lease.namespace, lease.name): lease for lease in intake.leases}
    closed = [leases[closure.namespace, closure.name] for closure in plan.closures]

    def runs(reason: str) -> int:
        return len({each.run_key for each in plan.leases if each.spec.reason == reason})

    return api.Counts(
        started=runs("Start"),
        waiting=len(plan.waits),
        grown=runs("Grow"),
        leases_opened=len(plan.leases),
        leases_closed=len(plan.closures),
        gpus_started=sum(len(each.spec.slice.nodes) for each in plan.leases if each.spec.slice.role == "Active"),
        gpus_closed=sum(len(each.spec.slice.nodes) for each in closed if each.spec.slice.role == "Active"),
    )
