"""Changes that the run's owner can make by submitting it again: another shape, another place, less of it.

Fields of a Run's spec do not change once it is there (spec §1), so each of these costs the run its age: it is tried as
if it were created at the cycle's time. For each kind the change that asks least of the run:

    spread     allowCrossGroupSpread: true
    groups     the largest smaller groupGPUs that divides the present groups
    pods       the largest smaller gpusPerPod that divides the present pods, or none
    borrow     the smallest higher funding.maxBorrowGPUs
    limit      the longest shorter timeLimit, in whole minutes
    selector   the first label that need not be asked for, else all of them
    flavor     another gpuType, the cheapest in credits first
    spares     the most spares that are fewer
    narrower   the largest total (least width, where it is malleable) that is smaller
    opportunistic   funding.opportunistic: true
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from jobtree.api.values.counted import counted, named
from jobtree.api.values.scalars import MINUTE, Duration, exact
from planner.advice.edits import Cell
from planner.remedies.bench import Bench, largest
from planner.remedies.record import SELECTOR, Change, Command, Remedy, Who, label_of
from policies.inputs.runs import RunRow


def remedies(bench: Bench) -> Iterator[Remedy]:
    """The cheapest change of each kind that starts the run alone; not confirmed yet."""
    for make in (_spread, _groups, _pods, _borrow, _limit, _selector, _flavor, _spares, _narrower, _opportunistic):
        remedy = make(bench)
        if remedy is not None:
            yield remedy


def as_it_is(bench: Bench) -> Remedy | None:
    """The run as it is, where that would do: farther claims give way in a world that has changed (spec §3.8)."""
    if bench.state.changed == bench.at or not _works(bench):
        return None
    words = "submitting it again as it is, under another name"
    commands = (Command(f"cancel {bench.run.name}", bench.run.namespace),)
    return replace(again(bench, "again", words, {}, {}), commands=commands)


def again(
    bench: Bench, kind: str, words: str, fields: dict[str, Any], said: dict[str, Any], *, gpus: int = 0
) -> Remedy:
    """The run submitted again with other ``fields`` (of `RunRow`); ``said``: the same as fields of its spec."""
    run = bench.run
    cells = {**fields, "created": bench.at}
    return Remedy(
        kind=kind,
        who=Who.AGAIN,
        gpus=gpus,
        words=words,
        changes=tuple(Change(f"Run {run.namespace}/{run.name}", path, value) for path, value in said.items()),
        edits=tuple(Cell("runs", run.key, column, value) for column, value in cells.items()),
    )


def _works(bench: Bench, **fields: Any) -> bool:
    return bench.starts(bench.with_run(**fields, created=bench.at))


def _spread(bench: Bench) -> Remedy | None:
    if bench.run.spread or len(bench.run.lowered().groups(bench.run.lowered().steps)) == 1:
        return None
    if not _works(bench, spread=True):
        return None
    words = "groups in several domains"
    return again(bench, "spread", words, {"spread": True}, {"spec.locality.allowCrossGroupSpread": True})


def _groups(bench: Bench) -> Remedy | None:
    run = bench.run
    for size in _divisors(max(run.lowered().base)):
        whole = not run.malleable or (run.width_min % size == 0 and (run.step or 0) % size == 0)
        if whole and size % run.unit == 0 and _works(bench, group=size):
            words = f"smaller groups, of {counted(size, 'GPU')}"
            return again(bench, "groups", words, {"group": size}, {"spec.locality.groupGPUs": size})
    return None


def _pods(bench: Bench) -> Remedy | None:
    for size in [*_divisors(bench.run.pod), 0] if bench.run.pod else []:
        if _works(bench, pod=size):
            words = f"smaller pods, of {counted(size, 'GPU')}" if size else "pods of any size"
            return again(bench, "pods", words, {"pod": size}, {"spec.resources.gpusPerPod": size or None})
    return None


def _divisors(number: int) -> list[int]:
    """Proper divisors, largest first."""
    return [size for size in range(number // 2, 0, -1) if number % size == 0]


def _borrow(bench: Bench) -> Remedy | None:
    run = bench.run
    if run.max_borrow is None or not run.allow_borrow or run.max_borrow >= run.total:
        return None
    span = run.total - run.max_borrow
    rise = span - largest(span, lambda less: _works(bench, max_borrow=run.total - less))
    if not _works(bench, max_borrow=run.max_borrow + rise):
        return None
    words = f"{counted(rise, 'GPU')} more on loan"
    limit = run.max_borrow + rise
    return again(bench, "borrow", words, {"max_borrow": limit}, {"spec.funding.maxBorrowGPUs": limit})


def _limit(bench: Bench) -> Remedy | None:
    longest = _longest_limit(bench) // MINUTE
    minutes = largest(longest, lambda limit: _works(bench, time_limit=limit * MINUTE))
    if not minutes or minutes * MINUTE == bench.run.time_limit:
        return None
    limit = Duration(minutes * MINUTE)
    words = f"a time limit of {limit}"
    return again(bench, "limit", words, {"time_limit": int(limit)}, {"spec.runtime.timeLimit": str(limit)})


def _longest_limit(bench: Bench) -> int:
    """The run's own limit; of one without, the longest that any rule could tell from none."""
    if bench.run.time_limit is not None:
        return bench.run.time_limit - 1
    money, policy = bench.state.money, bench.state.policy
    mine = [money.envelopes[e] for e in money.by_flavor.get(bench.run.flavor, ())]
    ends = [int(window.end) for window in policy.maintenance] + [e.end for e in mine if e.end is not None]
    limits = [e.per_run_time for e in mine if e.per_run_time is not None]
    limits += [use.per_run_time for use in money.uses if use.per_run_time is not None]
    return max([int(policy.accounting_period), *limits, *(end - bench.at for end in ends)])


def _selector(bench: Bench) -> Remedy | None:
    selector = bench.run.selector
    parts = [[pair] for pair in selector] + ([list(selector)] if len(selector) > 1 else [])
    for part in parts:
        rest = tuple(pair for pair in selector if pair not in part)
        if _works(bench, selector=rest):
            words = f"also nodes without {named([f'{key}={value}' for key, value in part])}"
            said: dict[str, Any] = {label_of(SELECTOR, key): None for key, _ in part}
            return again(bench, "selector", words, {"selector": rest}, said)
    return None


def _flavor(bench: Bench) -> Remedy | None:
    run, policy = bench.run, bench.state.policy
    others = sorted(
        {flavor for flavor in bench.state.fleet.flavor if flavor and flavor != run.flavor},
        key=lambda flavor: (exact(policy.credit_rates.get(flavor, 0)), flavor),
    )
    for flavor in others:
        if _works(bench, flavor=flavor):
            return again(bench, "flavor", f"on {flavor}", {"flavor": flavor}, {"spec.resources.gpuType": flavor})
    return None


def _spares(bench: Bench) -> Remedy | None:
    run = bench.run
    fewer = _most(run.spares - 1, lambda spares: _works(bench, spares=spares))
    if fewer is None:
        return None
    words = f"{counted(fewer, 'spare')} per group"
    lost = (run.spares - fewer) * run.unit * len(run.lowered().base)
    return again(bench, "spares", words, {"spares": fewer}, {"spec.spares": fewer}, gpus=lost)


def _most(most: int, works: Callable[[int], bool]) -> int | None:
    """The largest number from 0 to ``most`` that works."""
    found = largest(most + 1, lambda number: works(number - 1))
    return found - 1 if found else None


def _narrower(bench: Bench) -> Remedy | None:
    run = bench.run
    unit = (run.step or 0) if run.malleable else run.unit
    steps = (run.width_min - 1) // unit
    width = run.width_min - unit * (steps + 1)
    found = largest(steps, lambda step: _works(bench, **_narrowed(run, width + unit * step)))
    if not found:
        return None
    narrow = width + unit * found
    field = "spec.malleable.minTotalGPUs" if run.malleable else "spec.resources.totalGPUs"
    lost = run.width_min - narrow
    words = f"{counted(lost, 'GPU')} fewer"
    return again(bench, "narrower", words, _narrowed(run, narrow), {field: narrow}, gpus=lost)


def _narrowed(run: RunRow, width: int) -> dict[str, Any]:
    return {"min_total": width} if run.malleable else {"total": width}


def _opportunistic(bench: Bench) -> Remedy | None:
    if bench.run.opportunistic or not _works(bench, opportunistic=True):
        return None
    words = "run it unfunded, charged to nobody"
    fields = {"opportunistic": True, "requeue": True}  # the default of such a run
    return again(bench, "opportunistic", words, fields, {"spec.funding.opportunistic": True})
