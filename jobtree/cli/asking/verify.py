"""`verify`: what the lottery drew, recomputed from published data alone (spec §6, §10)."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from jobtree.api.values.errors import Refusal
from jobtree.cli.common import lakes, lookup, show
from jobtree.cli.common.args import LAKE, Commands, Options, command

if TYPE_CHECKING:
    from exporters.lake.lake import Lake
    from jobtree.api import Lease, Plan
    from jobtree.api.kinds.plan import Lottery
    from jobtree.check.time.lottery import Step
    from jobtree.cli.asking.recorded import Recorded
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
    verify.add_argument("--lake", metavar="DIR", help=LAKE)


def _verify(options: Options, given: argparse.Namespace) -> int:
    intake = options.intake()
    lake = lakes.named(options, given.lake) if given.lake is not None or options.state is not None else None
    if lake is not None:
        lake.refuse_stranger()
    found = [*_checked(intake, given.name, options.namespace, options.time, lake)]
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


def _checked(intake: Intake, name: str, namespace: str | None, now: int, lake: Lake | None) -> Iterator[Checked]:
    """Every step of a Plan's draws, or of those that took something of a run. Raises Refusal where none did."""
    from jobtree.cli.asking.recorded import Recorded

    plans = {plan.name: plan for plan in intake.plans}
    drawn = [lease for lease in intake.leases if lease.status.proof or lease.status.closure_reason == "Lottery"]
    if (plan := plans.get(name.lower())) is not None:  # sentences print it as 20260101T000000Z
        if plan.status.lottery is None:
            raise Refusal("nothing was drawn in it", subject=f"Plan {plan.name}")
        record = Recorded(lake, plan)
        mine = [lease for lease in drawn if plan.name in _plans_of(lease) or record.took(lease)]
        yield from (Checked(plan.name, step) for step in _steps(intake, record, set(), now))
        yield from (Checked(plan.name, step) for step in _said(intake, record, mine))
        return
    key = lookup.find_holder(intake, name, namespace)
    is_holder = lookup.holders(intake, key)
    drawn = [lease for lease in drawn if is_holder(lease.run_key)]
    if not drawn:
        raise Refusal(
            "no lottery has taken a lease of it that is kept; of those that were pruned its Plan tells: verify PLAN",
            subject=f"Run {'/'.join(key)}",
        )
    for drew in sorted({_plans_of(lease)[0] for lease in drawn}):
        if drew not in plans:
            raise Refusal(
                "it is pruned; the lake has its plan.json, with the same draws under `lottery`", subject=f"Plan {drew}"
            )
        mine, record = [lease for lease in drawn if _plans_of(lease)[0] == drew], Recorded(lake, plans[drew])
        wanted = {lease.status.proof.reservation for lease in mine if lease.status.proof is not None}
        yield from (Checked(drew, step) for step in _said(intake, record, mine))
        yield from (Checked(drew, step) for step in _steps(intake, record, wanted, now))


def _plans_of(lease: Lease) -> tuple[str, ...]:
    """The Plans that a drawn lease says it was drawn in: its proof's, and its cause's."""
    told = (lease.status.proof, lease.status.cause)
    return tuple(each.plan for each in told if each is not None) or ("",)


def _said(intake: Intake, record: Recorded, leases: Iterable[Lease]) -> Iterator[Step]:
    """Steps of leases that are said to be drawn in a Plan."""
    from jobtree.cli.asking.drawn import told

    for lease in leases:
        yield from told(record.plan, lease, intake)
        yield from record.opened(lease)


def _steps(intake: Intake, record: Recorded, reservations: set[str], now: int) -> Iterator[Step]:
    """Chain, seeds and picks of a Plan; of these reservations alone, where any are given."""
    import msgspec

    from jobtree.check.time.lottery import misplaced, next_after, promised, recompute
    from jobtree.cli.asking.drawn import pooled
    from jobtree.world.memory.lottery import NAME, Chain

    plan = record.whole()
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
    first, *rest = recompute(msgspec.structs.replace(lottery, draws=draws), chain.anchor)
    if not first.holds and first.computed in chain.retired:
        first = first._replace(published=first.computed)
    elif (wrong := misplaced(lottery, chain.position)) is not None:
        yield wrong
    yield first
    before = _drawn_before(intake, plan)
    if before is not None and first.holds and misplaced(before, chain.length) is None:
        yield from next_after(before, lottery, {chain.anchor, *chain.retired})
    yield from record.steps()
    there = {f"{each.namespace}/{each.metadata.name}": each for each in intake.reservations}
    for draw in draws:
        yield from promised(draw, there.get(draw.reservation))
        yield from pooled(plan, draw, intake, now)
    yield from rest


def _drawn_before(intake: Intake, plan: Plan) -> Lottery | None:
    """What the last Plan before it that drew has of its draws: of Plans the oldest are pruned first."""

    def turn(each: Plan) -> tuple[int, int, str]:
        return each.spec.at, len(each.name), each.name

    drew = sorted((each for each in intake.plans if each.status.lottery and turn(each) < turn(plan)), key=turn)
    return drew[-1].status.lottery if drew else None
