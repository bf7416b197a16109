"""What a node offers and what a pod asks for, in whole GPUs, milli-CPU and bytes (spec §2)."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import msgspec

from jobtree.api import Refusal, Run, dec_hook
from jobtree.api.core import Container, Node, PodSpec, QuantityText
from jobtree.api.scalars import Cpu, Memory, parse_count

Quantities = Mapping[str, QuantityText]


class Needs(NamedTuple):
    """Compute of one pod or node; a None means that the object does not say."""

    gpus: int
    cpu_milli: int | None
    memory: int | None


def gpus(quantities: Quantities, resource_names: Iterable[str]) -> int:
    """GPUs under any of the resources' names. Raises Refusal for what is no whole number."""
    return sum(_read(parse_count, name, quantities) or 0 for name in resource_names)


def of_node(node: Node, resource_names: Iterable[str] = ()) -> Needs:
    """A node's allocatable GPUs, CPU and memory. Raises Refusal naming the resource that cannot be read."""
    allocatable = node.status.allocatable
    return Needs(
        gpus(allocatable, resource_names),
        _read(Cpu.parse, "cpu", allocatable),
        _read(Memory.parse, "memory", allocatable),
    )


def max_pods(node: Node) -> int | None:
    """How many pods the node takes."""
    return _read(parse_count, "pods", node.status.allocatable)


def of_pod(spec: PodSpec, resource_names: Iterable[str] = ()) -> Needs:
    """What kube-scheduler reserves for a pod: its containers and sidecars together, or the largest moment of its
    initialisation where that is more, and the overhead. A container's limit stands for a request that it lacks.
    """
    names = tuple(resource_names)
    running = [_container(container, names) for container in spec.containers]
    peaks: list[tuple[int, int, int]] = []
    sidecars: list[tuple[int, int, int]] = []
    for container in spec.init_containers:
        need = _container(container, names)
        if container.restart_policy == "Always":
            sidecars.append(need)
            peaks.append(_total(sidecars))
        else:
            peaks.append(_total([*sidecars, need]))
    total = _total([*running, *sidecars])
    most = tuple(max(amounts) for amounts in zip(total, *peaks, strict=True))
    extra = _quantities(spec.overhead, names)
    return Needs(*(a + b for a, b in zip(most, extra, strict=True)))


def of_template(run: Run, resource_names: Iterable[str] = ()) -> PodSpec | None:
    """The pod spec of a run's template; None where it has none. Raises Refusal for one that cannot be read."""
    template = run.spec.template
    if template is None:
        return None
    try:
        spec = msgspec.convert(template.get("spec", {}), PodSpec, dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        raise Refusal(f"spec.template.spec cannot be read: {error}") from None
    of_pod(spec, resource_names)
    return spec


def _container(container: Container, names: tuple[str, ...]) -> tuple[int, int, int]:
    return _quantities({**container.resources.limits, **container.resources.requests}, names)


def _quantities(quantities: Quantities, names: tuple[str, ...]) -> tuple[int, int, int]:
    if not quantities:
        return (0, 0, 0)
    return (
        gpus(quantities, names),
        _read(Cpu.parse, "cpu", quantities) or 0,
        _read(Memory.parse, "memory", quantities) or 0,
    )


def _total(needs: Iterable[tuple[int, int, int]]) -> tuple[int, int, int]:
    gpu = cpu = memory = 0
    for a, b, c in needs:
        gpu, cpu, memory = gpu + a, cpu + b, memory + c
    return gpu, cpu, memory


def _read(parse: Callable[[QuantityText], int], name: str, quantities: Quantities) -> int | None:
    value = quantities.get(name)
    return None if value is None else _parsed(parse, name, value)


@lru_cache(maxsize=4096)
def _parsed(parse: Callable[[QuantityText], int], name: str, value: QuantityText) -> int:
    try:
        return int(parse(value))
    except ValueError as error:
        raise Refusal(f"{name}: {error}") from None
