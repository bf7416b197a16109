"""The rules of a Budget that its types cannot say (spec §1)."""

from __future__ import annotations

from collections.abc import Iterator

from jobtree.api.kinds.budget import AggregateCap, Budget, Envelope, UseCap
from jobtree.api.values.counted import named
from jobtree.api.values.errors import Refusal, wrong
from jobtree.api.values.scalars import HOUR, exact


def budget_problems(budget: Budget) -> Iterator[Refusal]:
    """Every fault of one Budget, in a fixed order."""
    spec = budget.spec
    if not spec.envelopes and not spec.use_caps:
        allowed = "an entry in one of them at least"
        problem = f"spec.envelopes and spec.useCaps are empty; allowed is {allowed}"
        yield Refusal(problem, field="spec.envelopes", given="nothing", allowed=allowed)
    first: dict[str, int] = {}
    for index, envelope in enumerate(spec.envelopes):
        where = f"spec.envelopes[{index}]"
        if envelope.name in first:
            yield wrong(
                f"{where}.name", envelope.name, f"a name that spec.envelopes[{first[envelope.name]}] has not taken"
            )
        first[envelope.name] = index
        yield from _envelope_problems(envelope, where)
    for index, parent in enumerate(spec.parents or ()):
        if parent == spec.owner:
            yield wrong(f"spec.parents[{index}]", parent, "another owner: nothing descends from itself")
    names: set[str] = set()
    for index, cap in enumerate(spec.aggregate_caps):
        where = f"spec.aggregateCaps[{index}]"
        if cap.name in names:
            yield wrong(f"{where}.name", cap.name, "a name that no other aggregate cap has")
        names.add(cap.name)
        yield from _aggregate_problems(cap, where, {envelope.name: envelope for envelope in spec.envelopes})
    taken: set[str] = set()
    for index, use in enumerate(spec.use_caps):
        where = f"spec.useCaps[{index}]"
        if use.name in taken:
            yield wrong(f"{where}.name", use.name, "a name that no other use cap has")
        taken.add(use.name)
        yield from _use_problems(use, where)


def budget_warnings(budget: Budget) -> list[str]:
    """What is odd in one Budget, and no fault."""
    return [
        f"spec.aggregateCaps[{index}] bounds nothing: it has no maxConcurrency, maxGPUHours or maxCredits"
        for index, cap in enumerate(budget.spec.aggregate_caps)
        if cap.max_concurrency is None and cap.max_gpu_hours is None and cap.max_credits is None
    ]


def _envelope_problems(envelope: Envelope, where: str) -> Iterator[Refusal]:
    start, end, hours = envelope.start, envelope.end, envelope.max_gpu_hours
    if start is not None and end is not None:
        if end <= start:
            yield wrong(f"{where}.end", end, f"a time after {where}.start, {start}")
        elif hours is not None and exact(hours) * HOUR > (most := envelope.concurrency * (end - start)):
            whole = f"{most / HOUR:.6f}".rstrip("0").rstrip(".")
            yield wrong(f"{where}.maxGPUHours", hours, f"at most concurrency × window, {whole} GPU-hours")
    limits = envelope.per_run
    if limits is None:
        return
    for field, value in (("maxTime", limits.max_time), ("defaultTime", limits.default_time)):
        if value is not None and value == 0:
            yield wrong(f"{where}.perRun.{field}", value, "a duration above 0s, or leave it out")
    if limits.max_time is not None and limits.default_time is not None and limits.default_time > limits.max_time:
        yield wrong(f"{where}.perRun.defaultTime", limits.default_time, f"at most perRun.maxTime, {limits.max_time}")


def _use_problems(use: UseCap, where: str) -> Iterator[Refusal]:
    if not use.bounds:
        yield Refusal(
            f"{where} bounds nothing: it has none of maxConcurrency, maxGPUHours, maxCredits, perRun.maxGPUs"
            " and perRun.maxTime."
        )
    if use.start is not None and use.end is not None and use.end <= use.start:
        yield wrong(f"{where}.end", use.end, f"a time after {where}.start, {use.start}")
    if use.per_run is not None and use.per_run.max_time == 0:
        yield wrong(f"{where}.perRun.maxTime", use.per_run.max_time, "a duration above 0s, or leave it out")


def _aggregate_problems(cap: AggregateCap, where: str, envelopes: dict[str, Envelope]) -> Iterator[Refusal]:
    seen: set[str] = set()
    for index, name in enumerate(cap.envelopes):
        field = f"{where}.envelopes[{index}]"
        if name not in envelopes:
            yield wrong(field, name, f"an envelope of this Budget: {named(envelopes)}")
            continue
        if name in seen:
            yield wrong(field, name, "each envelope once, and it is listed twice")
        seen.add(name)
        flavor = envelopes[name].flavor
        if cap.flavor is not None and flavor != cap.flavor:
            yield wrong(field, name, f"an envelope of flavor {cap.flavor}, and this one has {flavor}")
