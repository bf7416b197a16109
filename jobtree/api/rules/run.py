"""The rules of a Run that its types cannot say (spec §1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from jobtree.api.kinds.base import DEFAULT_RESOURCE_NAMES, MAX_ARRAY_NAME, MAX_GROUPS, MAX_RUN_NAME
from jobtree.api.kinds.run import Resources, Run, RunSpec
from jobtree.api.kinds.template import FORBIDDEN
from jobtree.api.values.counted import counted
from jobtree.api.values.errors import Refusal, missing, wrong
from jobtree.api.values.scalars import parse_count


def run_problems(run: Run) -> Iterator[Refusal]:
    """Every fault of one Run, in a fixed order; what follows from another one is passed over."""
    spec = run.spec
    yield from _name_problems(run)
    resources = [] if _is_plain_gpu_run(spec.resources) else list(_resource_problems(spec))
    yield from resources
    if not resources:
        if spec.malleable is not None:
            yield from _width_problems(spec)
        if spec.resources.gpus_per_pod is not None:
            yield from _pod_problems(spec)
        yield from _group_problems(spec)
    yield from _time_problems(spec)
    if spec.spares_per_group is not None and spec.spares_given not in {None, spec.spares_per_group}:
        yield wrong(
            "spec.sparesPerGroup", spec.spares_per_group, f"what spec.spares says, {spec.spares_given}, or only one"
        )
    if spec.follow is not None or spec.parent is not None:
        yield from _upstream_problems(run)
    if spec.array is not None:
        yield from _array_problems(spec)
    if spec.template is not None:
        yield from template_problems(spec, spec.template)


def run_warnings(run: Run) -> list[str]:
    """What is odd in one Run, and no fault."""
    spec = run.spec
    return _warnings(spec) if spec.funding.sponsors or spec.funding.max_borrow_gpus is not None else []


def group_sizes(spec: RunSpec) -> tuple[int, ...]:
    """The different sizes in GPUs that the groups of a GPU run can have, largest first (spec §2, lowering)."""
    group = spec.locality.group_gpus
    if spec.malleable is not None:
        return (group,) if group else tuple(sorted({spec.min_gpus, spec.step_gpus}, reverse=True))
    if not group:
        return (spec.total_gpus,)
    whole, rest = divmod(spec.total_gpus, group)
    return (*((group,) if whole else ()), *((rest,) if rest else ()))


def _name_problems(run: Run) -> Iterator[Refusal]:
    name = run.metadata.name
    longest = MAX_RUN_NAME if run.spec.array is None else MAX_ARRAY_NAME
    if len(name) > longest:
        what = "a Run" if run.spec.array is None else "a Run with an array"
        yield wrong("metadata.name", name, f"at most {longest} characters for {what}, and it has {len(name)}")


def _is_plain_gpu_run(resources: Resources) -> bool:
    stray = resources.pods is not None or resources.cpu_per_pod is not None or resources.memory_per_pod is not None
    return resources.gpu_type is not None and resources.total_gpus is not None and not stray


def _resource_problems(spec: RunSpec) -> Iterator[Refusal]:
    """A run states either GPUs or pods of CPU, that wholly, and nothing of the other."""
    resources = spec.resources
    gpu = {"gpuType": resources.gpu_type, "totalGPUs": resources.total_gpus}
    cpu = {"pods": resources.pods, "cpuPerPod": resources.cpu_per_pod, "memoryPerPod": resources.memory_per_pod}
    if any(value is not None for value in (*gpu.values(), resources.gpus_per_pod)):
        for name, value in cpu.items():
            if value is not None:
                yield wrong(f"spec.resources.{name}", value, "nothing here: a run of GPUs says that in its template")
        wanted: dict[str, Any] = gpu
    else:
        wanted = cpu
    for name, value in wanted.items():
        if value is None:
            yield missing(f"spec.resources.{name}", "gpuType and totalGPUs, or pods, cpuPerPod and memoryPerPod")
        if value == 0:
            yield wrong(f"spec.resources.{name}", value, "a quantity above 0")
    if wanted is gpu:
        return
    no_gpus = "nothing here: a run with pods of CPU has no GPUs"
    if spec.locality.group_gpus is not None:
        yield wrong("spec.locality.groupGPUs", spec.locality.group_gpus, no_gpus)
    if spec.malleable is not None:
        yield wrong("spec.malleable.minTotalGPUs", spec.min_gpus, no_gpus)
    if spec.spares:
        yield wrong("spec.spares", spec.spares, no_gpus)


def _width_problems(spec: RunSpec) -> Iterator[Refusal]:
    assert spec.malleable is not None
    low, high, step = spec.min_gpus, spec.max_gpus, spec.step_gpus
    total, desired = spec.total_gpus, spec.malleable.desired_total_gpus
    group = spec.locality.group_gpus
    if low > total:
        yield wrong("spec.malleable.minTotalGPUs", low, f"at most spec.resources.totalGPUs, {total}")
        return  # what is not between the two is no multiple of steps from them either
    if high < total:
        yield wrong("spec.malleable.maxTotalGPUs", high, f"at least spec.resources.totalGPUs, {total}")
        return
    if desired is not None and not low <= desired <= high:
        yield wrong("spec.malleable.desiredTotalGPUs", desired, f"{low} to {high}, the run's min and max")
        return
    for field, width in (
        ("spec.resources.totalGPUs", total),
        ("spec.malleable.maxTotalGPUs", high),
        ("spec.malleable.desiredTotalGPUs", desired),
    ):
        if width is not None and (width - low) % step:
            below = width - (width - low) % step
            yield wrong(
                field, width, f"minTotalGPUs, {low}, plus a multiple of stepGPUs, {step}: {below} or {below + step}"
            )
    if group:
        for field, width in (("minTotalGPUs", low), ("stepGPUs", step)):
            if width % group:
                yield wrong(f"spec.malleable.{field}", width, f"a multiple of spec.locality.groupGPUs, {group}")


def _pod_problems(spec: RunSpec) -> Iterator[Refusal]:
    pod = spec.resources.gpus_per_pod or 1
    sizes = group_sizes(spec)
    if any(size % pod for size in sizes):
        groups = " and ".join(map(str, sizes))
        yield wrong("spec.resources.gpusPerPod", pod, f"a divisor of every group, here of {counted(groups, 'GPU')}")


def _group_problems(spec: RunSpec) -> Iterator[Refusal]:
    """So that one run cannot take the time of all others: groups as in spec §2, lowering."""
    group = spec.locality.group_gpus
    if group and -(-spec.max_gpus // group) > MAX_GROUPS:
        least = -(-spec.max_gpus // MAX_GROUPS)
        yield wrong("spec.locality.groupGPUs", group, f"at least {least}: a run has at most {MAX_GROUPS} groups")
    steps = 0 if group or spec.malleable is None else (spec.max_gpus - spec.min_gpus) // spec.step_gpus
    if steps >= MAX_GROUPS:
        least = -(-(spec.max_gpus - spec.min_gpus) // (MAX_GROUPS - 1))
        allowed = f"at least {least}: each step is a group, and a run has at most {MAX_GROUPS} groups"
        yield wrong("spec.malleable.stepGPUs", spec.step_gpus, allowed)


def _time_problems(spec: RunSpec) -> Iterator[Refusal]:
    runtime = spec.runtime
    for field, value in (
        ("checkpoint", runtime.checkpoint),
        ("expected", runtime.expected),
        ("timeLimit", runtime.time_limit),
    ):
        if value == 0:
            yield wrong(f"spec.runtime.{field}", value, "a duration above 0s, or leave it out")


def _upstream_problems(run: Run) -> Iterator[Refusal]:
    name, follow = run.metadata.name, run.spec.follow
    if run.spec.parent == name:
        yield wrong("spec.parent", name, "another Run: nothing is its own parent")
    seen: set[str] = set()
    for index, upstream in enumerate(follow.after if follow else ()):
        if upstream == name:
            yield wrong(f"spec.follow.after[{index}]", upstream, "another Run: nothing follows itself")
        if upstream in seen:
            yield wrong(f"spec.follow.after[{index}]", upstream, "each Run once, and it is listed twice")
        seen.add(upstream)


def _array_problems(spec: RunSpec) -> Iterator[Refusal]:
    array = spec.array
    assert array is not None
    if array.count is None and array.indices is None:
        yield missing("spec.array.count", "either count or indices")
    if array.count is not None and array.indices is not None:
        yield wrong("spec.array.indices", array.indices, "either count or indices, not both")
    seen: set[int] = set()
    for position, index in enumerate(array.indices or ()):
        if index in seen:
            yield wrong(f"spec.array.indices[{position}]", index, "each index once, and it is listed twice")
        seen.add(index)
    if spec.gang is not None:
        yield wrong("spec.gang.name", spec.gang.name, "nothing beside an array: each index of an array starts alone")


def template_problems(
    spec: RunSpec, template: Mapping[str, Any], names: Sequence[str] = DEFAULT_RESOURCE_NAMES
) -> Iterator[Refusal]:
    """What is wrong with a run's template; ``names``: the resources that are GPUs."""
    pod = template.get("spec")
    if not isinstance(pod, Mapping):
        yield wrong("spec.template.spec", pod, "a pod spec: a mapping with containers")
        return
    containers = pod.get("containers")
    if not isinstance(containers, list) or not containers or not all(isinstance(each, Mapping) for each in containers):
        yield wrong("spec.template.spec.containers", containers, "a list of at least one container")
        return
    for field, why in FORBIDDEN.items():
        if pod.get(field):
            yield wrong(f"spec.template.spec.{field}", pod[field], f"to leave it out: {why}")
    yield from _init_problems(pod.get("initContainers"), names)
    sizes = (spec.resources.gpus_per_pod,) if spec.resources.gpus_per_pod else group_sizes(spec)
    for need in ("limits", "requests"):
        try:
            stated = list(_gpus(containers, need, names))
        except Refusal as refusal:
            yield refusal
            continue
        total = sum(count for _, count in stated)
        if stated and sizes != (total,):
            given = total if len(stated) == 1 else [count for _, count in stated]
            yield wrong(stated[0][0], given, _limits_allowed(spec, sizes))


def _init_problems(containers: object, names: Sequence[str]) -> Iterator[Refusal]:
    """Init containers are no part of the sum, and what they ask for could be more than the run's."""
    for index, container in enumerate(containers if isinstance(containers, list) else ()):
        for need in ("limits", "requests"):
            stated = _stated(container, need)
            for name in names:
                if name in stated:
                    field = f"spec.template.spec.initContainers[{index}].resources.{need}[{name}]"
                    yield wrong(field, stated[name], "to leave it out: the GPUs are those of the containers")


def _stated(container: object, need: str) -> Mapping[str, Any]:
    """The ``limits`` or ``requests`` of a container."""
    resources = container.get("resources") if isinstance(container, Mapping) else None
    stated = resources.get(need) if isinstance(resources, Mapping) else None
    return stated if isinstance(stated, Mapping) else {}


def _limits_allowed(spec: RunSpec, sizes: tuple[int, ...]) -> str:
    if spec.resources.is_cpu:
        return "no GPUs, as in a run with pods of CPU"
    if spec.resources.gpus_per_pod:
        return f"spec.resources.gpusPerPod, {sizes[0]}"
    return "to leave it out, since the run fills it in, or to set spec.resources.gpusPerPod to it"


def _gpus(containers: list[Mapping[str, Any]], need: str, names: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Fields of the containers that state GPUs, and how many."""
    for index, container in enumerate(containers):
        stated = _stated(container, need)
        for name in names:
            if name in stated:
                field = f"spec.template.spec.containers[{index}].resources.{need}[{name}]"
                try:
                    yield field, parse_count(stated[name])
                except (ValueError, TypeError):
                    raise wrong(field, stated[name], "a whole number of GPUs") from None


def _warnings(spec: RunSpec) -> list[str]:
    if spec.funding.allow_borrow:
        return []
    field = "sponsors" if spec.funding.sponsors else "maxBorrowGPUs"
    return [f"spec.funding.{field} has no effect without spec.funding.allowBorrow: true"]
