"""`verify`: what the lottery drew, recomputed from published data alone (spec §6, §10)."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from jobtree.api.values.errors import Refusal
from jobtree.cli.common import lookup, show
from jobtree.cli.common.args import Commands, Options, command

if TYPE_CHECKING:
    from jobtree.api import Lease, Plan
    from jobtree.check.time.lottery import Step
    from jobtree.world.reading.intake import Intake


class Checked(NamedTuple):
    """A step of one Plan's draws."""

    plan: str
    step: Step


def add(commands: Commands) -> None:
    """Declares the command."""
    verify = command(
        commands,
        "verify",
        _verify,
        "recompute what the lottery drew, from published data alone",
        example="kubectl runs --state cluster.yaml verify train-32",
    )
    verify.add_argument("name", metavar="RUN|PLAN", help="a run that was drawn, or a Plan that drew")


def _verify(options: Options, given: argparse.Namespace) -> int:
    intake = options.cluster().read()
    found = [*_checked(intake, given.name, options.namespace, options.time)]
    wrong = [each for each in found if not each.step.holds]
    if options.output in {"json", "yaml"}:
        show.data([_data(each) for each in found], options.output)
    else:
        for plan in dict.fromkeys(each.plan for each in found):
            show.say(f"Plan {plan}", *(f"  {_line(each.step)}" for each in found if each.plan == plan))
        if not wrong:
            show.say(f"All {sum(each.step.compared for each in found)} hold: it was drawn as published.")
    if wrong:
        step = wrong[0].step
        raise Refusal(
            f"{step.what} was published as {step.published}, and is {step.computed}: the draw was not made like this",
            subject=f"Plan {wrong[0].plan}",
        )
    return 0


def _line(step: Step) -> str:
    if not step.compared:
        return f"-      {step.what}"
    return f"{'holds' if step.holds else 'WRONG'}  {step.what}: {step.computed}"


def _data(each: Checked) -> dict[str, object]:
    step = each.step
    said = {"published": step.published, "computed": step.computed, "holds": step.holds} if step.compared else {}
    return {"plan": each.plan, "step": step.what, **said}


def _checked(intake: Intake, name: str, namespace: str | None, now: int) -> Iterator[Checked]:
    """Every step of a Plan's draws, or of those that took something of a run. Raises Refusal where none did."""
    from jobtree.cli.asking.drawn import told

    plans = {plan.name: plan for plan in intake.plans}
    if (plan := plans.get(name.lower())) is not None:  # sentences print it as 20260101T000000Z
        if plan.status.lottery is None:
            raise Refusal("nothing was drawn in it", subject=f"Plan {plan.name}")
        said = [step for lease in _drawn(intake) if _plan_of(lease) == plan.name for step in told(plan, lease, intake)]
        yield from (Checked(plan.name, step) for step in (*_steps(intake, plan, set(), now), *said))
        return
    key = lookup.find_holder(intake, name, namespace)
    is_holder = lookup.holders(intake, key)
    drawn = [lease for lease in _drawn(intake) if is_holder(lease.run_key)]
    if not drawn:
        raise Refusal("no lottery has taken anything of it", subject=f"Run {'/'.join(key)}")
    for drew in sorted({_plan_of(lease) for lease in drawn}):
        if drew not in plans:
            raise Refusal(
                "it is pruned; the lake has its plan.json, with the same draws under `lottery`", subject=f"Plan {drew}"
            )
        wanted = {lease.status.proof.reservation for lease in drawn if lease.status.proof is not None}
        said = [step for lease in drawn if _plan_of(lease) == drew for step in told(plans[drew], lease, intake)]
        yield from (Checked(drew, step) for step in (*said, *_steps(intake, plans[drew], wanted, now)))


def _drawn(intake: Intake) -> Iterator[Lease]:
    """Every lease that says a lottery closed it, by its reason or by a proof."""
    for lease in intake.leases:
        if lease.status.proof is not None or lease.status.closure_reason == "Lottery":
            yield lease


def _plan_of(lease: Lease) -> str:
    """The Plan that a drawn lease says it was drawn in: its proof's, else its cause's."""
    told = lease.status.proof or lease.status.cause
    return "" if told is None else told.plan


def _steps(intake: Intake, plan: Plan, reservations: set[str], now: int) -> Iterator[Step]:
    """Chain, seeds and picks of a Plan; of these reservations alone, where any are given."""
    import msgspec

    from jobtree.check.time.lottery import misplaced, promised, recompute
    from jobtree.cli.asking.drawn import pooled
    from jobtree.world.memory.lottery import NAME, Chain

    lottery = plan.status.lottery
    chain = Chain.of(intake.config_map(NAME))
    if lottery is None:
        raise Refusal("nothing was drawn in it", subject=f"Plan {plan.name}")
    if chain is None:
        raise Refusal("it publishes no anchor, so nothing can be verified", subject=f"ConfigMap jobtree-system/{NAME}")
    # A chain that was retired had come to a position of its own, which nothing tells any more.
    if (wrong := misplaced(lottery, chain.length if chain.retired else chain.position)) is not None:
        yield wrong  # hashed back so often, it might never end
        return
    draws = tuple(draw for draw in lottery.draws if not reservations or draw.reservation in reservations)
    for draw in draws:
        if draw.pools_digest and not draw.pools:
            raise Refusal(
                f"the pools of {draw.reservation} have more than 500 tokens and lie in the lake: verify its plan.json",
                subject=f"Plan {plan.name}",
            )
    first, *rest = recompute(msgspec.structs.replace(lottery, draws=draws), chain.anchor)
    if not first.holds and first.computed in chain.retired:
        first = first._replace(published=first.computed)
    elif (wrong := misplaced(lottery, chain.position)) is not None:
        yield wrong
    yield first
    there = {f"{each.namespace}/{each.metadata.name}": each for each in intake.reservations}
    for draw in draws:
        yield from promised(draw, there.get(draw.reservation))
        yield from pooled(plan, draw, intake, now)
    yield from rest
