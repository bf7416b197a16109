"""The Plan object: one cycle's record in the cluster, what ``kubectl get plans`` shows (spec §1)."""

import hashlib
import math
from collections.abc import Mapping
from typing import Final

import msgspec

from exporters.plans import plain, planjson
from jobtree.api import ObjectMeta, Policy, Time, enc_hook
from jobtree.api.kinds import plan as api
from jobtree.api.values.counted import counted
from jobtree.world.memory import seen
from jobtree.world.plan import Plan
from jobtree.world.reading.intake import Intake

LIMIT: Final = 2**19
"""Most bytes of the object as JSON (spec §1); what is longer lies in the lake's plan, which it names by SHA-256."""
_WARNINGS: Final = 200
"""Most warnings that an object carries; the lake has them all."""
_LETTERS: Final = 500
"""Most letters of one of them."""
_TOKENS: Final = 500
"""Most tokens of a pool that the object shows (spec §1)."""
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
    whole = api.Plan(
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
            lottery=lottery_of(plan),
            warnings=_warnings(plan, _WARNINGS),
            counts=_counts(intake, plan),
        ),
    )
    return _bounded(whole, plan)


def _bounded(whole: api.Plan, plan: Plan) -> api.Plan:
    """The object with as many warnings as it has room for."""
    most = len(whole.status.warnings)
    while most and len(msgspec.json.encode(plain.document(whole))) > LIMIT:
        most //= 2
        status = msgspec.structs.replace(whole.status, warnings=_warnings(plan, most))
        whole = msgspec.structs.replace(whole, status=status)
    return whole


def _warnings(plan: Plan, most: int) -> tuple[api.PlanWarning, ...]:
    """So many of the plan's warnings, each cut to a length that an object has room for; how many more there are."""
    found = [api.PlanWarning(object=_cut(each.object), message=_cut(each.message)) for each in plan.warnings[:most]]
    more = len(plan.warnings) - most
    if more > 0:
        words = (
            f"there {'is' if more == 1 else 'are'} {counted(more, 'more warning')}, all of them in the lake's plan.json"
        )
        found.append(api.PlanWarning(object=f"Plan {name_of(plan)}", message=words))
    return tuple(found)


def _cut(text: str) -> str:
    return text if len(text) <= _LETTERS else f"{text[: _LETTERS - 1]}…"


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


def lottery_of(plan: Plan) -> api.Lottery | None:
    """What was drawn; pools of more than 500 tokens by their SHA-256 alone, the plan in the lake has them."""
    if plan.lottery is None:
        return None
    return msgspec.structs.replace(plan.lottery, draws=tuple(map(_draw, plan.lottery.draws)))


def _draw(draw: api.Draw) -> api.Draw:
    if all(sum(len(each.tokens) for each in pool) <= _TOKENS for pool in draw.pools):
        return draw
    return msgspec.structs.replace(draw, pools=(), pools_digest=digest_of(draw.pools))


def digest_of(record: object) -> str:
    """SHA-256 in hex of the canonical JSON of a record: equal ones have equal digests."""
    return hashlib.sha256(msgspec.json.encode(record, enc_hook=enc_hook, order="deterministic")).hexdigest()


def _counts(intake: Intake, plan: Plan) -> api.Counts:
    leases = {(lease.namespace, lease.name): lease for lease in intake.leases}
    closed = [leases[closure.namespace, closure.name] for closure in plan.closures]

    def runs(reason: str) -> int:
        return len({each.run_key for each in plan.leases if each.spec.reason == reason})

    return api.Counts(
        started=runs("Start"),
        waiting=len(plan.waits),
        grown=runs("Grow"),
        cut=len({leases[each.namespace, each.name].run_key for each in plan.closures if each.made_room_for}),
        leases_opened=len(plan.leases),
        leases_closed=len(plan.closures),
        gpus_started=sum(len(each.spec.slice.nodes) for each in plan.leases if each.spec.slice.role == "Active"),
        gpus_closed=sum(len(each.spec.slice.nodes) for each in closed if each.spec.slice.role == "Active"),
    )
