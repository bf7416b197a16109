"""What a node offers and what a pod asks for, in whole GPUs, milli-CPU and bytes (spec §2)."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from jobtree.api import Refusal, Run, dec_hook
from jobtree.api.core import Container, Node, PodSpec, QuantityText
from jobtree.api.errors import Unreadable, wrong
from jobtree.api.scalars import Cpu, Memory, parse_count

Quantities = Mapping[str, QuantityText]
Parse = Callable[[QuantityText], int]

_MOST: Final = 2**50
"""Most of anything that one quantity may state: sums of thousands of them still fit the columns' 64 bits."""


class Needs(NamedTuple):
    """Compute of one pod or node; a None means that the object does not say."""

    gpus: int
    cpu_milli: int | None
    memory: int | None


def of_node(node: Node, resource_names: Iterable[str] = ()) -> Needs:
    """A node's allocatable GPUs, CPU and memory. Raises Refusal naming the resource that cannot be read."""
    return _offer(node.status.allocatable, resource_names, "allocatable")


def max_pods(node: Node) -> int | None:
    """How many pods the node takes."""
    return _read(parse_count, node.status.allocatable, "pods", "allocatable")


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
    need = _offer(quantities, names, "a container's")
    return need.gpus, need.cpu_milli or 0, need.memory or 0


def _offer(quantities: Quantities, names: Iterable[str], where: str) -> Needs:
    return Needs(
        sum(_read(parse_count, quantities, name, where) or 0 for name in names),
        _read(Cpu.parse, quantities, "cpu", where),
        _read(Memory.parse, quantities, "memory", where),
    )


def _total(needs: Iterable[tuple[int, int, int]]) -> tuple[int, int, int]:
    gpu = cpu = memory = 0
    for a, b, c in needs:
        gpu, cpu, memory = gpu + a, cpu + b, memory + c
    return gpu, cpu, memory


def _read(parse: Parse, quantities: Quantities, name: str, where: str) -> int | None:
    value = quantities.get(name)
    return None if value is None else _parsed(parse, value, name, where)


@lru_cache(maxsize=4096)
def _parsed(parse: Parse, value: QuantityText, name: str, where: str) -> int:
    try:
        amount = int(parse(value))
    except Unreadable as error:
        raise wrong(f"{where} {name}", value, error.allowed) from None
    if amount > _MOST:
        raise wrong(f"{where} {name}", value, f"at most {Memory(_MOST)}")
    return amount
