"""Needs of pods and offers of nodes, in whole GPUs, milli-CPU and bytes (spec §2)."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from jobtree.api import Refusal, Run, decode
from jobtree.api.kinds.base import DEFAULT_RESOURCE_NAMES, MAX_NODE_GPUS
from jobtree.api.kinds.core import Container, Node, Pod, PodSpec, QuantityText
from jobtree.api.rules.run import template_problems
from jobtree.api.values.errors import Unreadable, wrong
from jobtree.api.values.scalars import Cpu, Memory, parse_count

Quantities = Mapping[str, QuantityText]
Parse = Callable[[QuantityText], int]

_MOST: Final = 2**50
"""Most of anything that one quantity may state: sums of thousands of them still fit the columns' 64 bits."""


class Needs(NamedTuple):
    """Needs of a pod."""

    gpus: int
    cpu_milli: int
    memory: int


class Offer(NamedTuple):
    """Offer of a node; a None means that it does not say."""

    gpus: int
    cpu_milli: int | None
    memory: int | None
    max_pods: int | None


def of_node(node: Node, resource_names: Iterable[str] = ()) -> Offer:
    """A node's allocatable resources. Raises Refusal naming the one that cannot be read."""
    return _offer(tuple(node.status.allocatable.items()), tuple(resource_names))


@lru_cache(maxsize=4096)  # a fleet has few kinds of nodes
def _offer(allocatable: tuple[tuple[str, QuantityText], ...], resource_names: tuple[str, ...]) -> Offer:
    given = dict(allocatable)
    gpus = sum(_read(parse_count, given, name, "allocatable ") or 0 for name in resource_names)
    if gpus > MAX_NODE_GPUS:
        named = " and ".join(name for name in resource_names if name in given)
        raise wrong(f"allocatable {named}", gpus, f"at most {MAX_NODE_GPUS} GPUs on one node")
    return Offer(
        gpus,
        _read(Cpu.parse, given, "cpu", "allocatable "),
        _read(Memory.parse, given, "memory", "allocatable "),
        _read(parse_count, given, "pods", "allocatable "),
    )


def left_out(label: str) -> str:
    """The warning of a node with GPUs whose flavor no ``label`` says, so that no cycle plans with it."""
    way = "say in a Policy's topology.labels which label it is, see docs/nodes.md"
    return f"it has no {label} label and is left out ({way})"


def of_pod(spec: PodSpec, resource_names: Iterable[str] = ()) -> Needs:
    """Count what kube-scheduler reserves for a pod: its containers and sidecars together, or the largest moment of its
    initialisation where that is more, and the overhead. A container's limit stands for a request that it lacks.
    """
    names = tuple(resource_names)
    running = [_container(container, names) for container in spec.containers]
    if len(running) == 1 and not spec.init_containers and not spec.overhead:
        return running[0]
    peaks: list[Needs] = []
    sidecars: list[Needs] = []
    for container in spec.init_containers:
        need = _container(container, names)
        if container.restart_policy == "Always":
            sidecars.append(need)
            peaks.append(_total(sidecars))
        else:
            peaks.append(_total([*sidecars, need]))
    total = _total([*running, *sidecars])
    most = Needs(*(max(amounts) for amounts in zip(total, *peaks, strict=True)))
    return _total([most, _quantities(spec.overhead, names)])


def of_template(run: Run, resource_names: Iterable[str] = ()) -> PodSpec | None:
    """The pod spec of a run's template; None where it has none. Raises Refusal, with run and field, for one that
    cannot be read, or asks for GPUs, by the names that the Policy has for them, beside those that the run fills in:
    nobody would pay for them.
    """
    template = run.spec.template
    if template is None:
        return None
    stated = template.get("spec", {})
    try:  # as the Pod that it would be, so that what is wrong is said by field
        pod = decode("Pod", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": run.name}, "spec": stated})
    except Refusal as refusal:
        raise _of(run, refusal, "spec.template.") from None
    assert isinstance(pod, Pod)
    spec = pod.spec
    names = tuple(resource_names)
    try:
        of_pod(spec, names)
    except Refusal:
        for field, quantities in _stated(spec):
            try:
                _quantities(quantities, names, f"{field}.")
            except Refusal as refusal:
                raise _of(run, refusal) from None
        raise
    for problem in _beside(run, template, spec, names):
        raise _of(run, problem)
    return spec


def _beside(run: Run, template: Mapping[str, Any], spec: PodSpec, names: tuple[str, ...]) -> Iterator[Refusal]:
    """GPUs that a template asks for otherwise than the run does; a resource counts with its shared form too."""
    if names and names != DEFAULT_RESOURCE_NAMES:  # else whoever decodes a Run has seen to it
        yield from template_problems(run.spec, template, names)
    for field, quantities in _stated(spec):
        for name in quantities:
            if any(name.startswith(f"{gpu}.") for gpu in names):
                yield wrong(f"{field}[{name}]", quantities[name], "to leave it out: GPUs of a run are whole")


def _of(run: Run, refusal: Refusal, inside: str = "") -> Refusal:
    """The refusal of something in a run's template, whose field is one ``inside`` of it."""
    field, given, allowed = inside + refusal.field, refusal.given, refusal.allowed
    problem = f"{field} is {given}; allowed is {allowed}"
    return Refusal(problem, subject=run.subject, field=field, given=given, allowed=allowed)


def _stated(spec: PodSpec) -> Iterator[tuple[str, Quantities]]:
    """Every field of a template's pod spec that states quantities."""
    for part, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for index, container in enumerate(containers):
            field = f"spec.template.spec.{part}[{index}].resources"
            yield f"{field}.requests", container.resources.requests
            yield f"{field}.limits", container.resources.limits
    yield "spec.template.spec.overhead", spec.overhead


def _container(container: Container, names: tuple[str, ...]) -> Needs:
    return _quantities({**container.resources.limits, **container.resources.requests}, names)


def _quantities(quantities: Quantities, names: tuple[str, ...], where: str = "a container's ") -> Needs:
    return _amounts(tuple(quantities.items()), names, where)


@lru_cache(maxsize=4096)  # a fleet has few kinds of pods
def _amounts(items: tuple[tuple[str, QuantityText], ...], names: tuple[str, ...], where: str) -> Needs:
    quantities = dict(items)
    return Needs(
        sum(_read(parse_count, quantities, name, where) or 0 for name in names),
        _read(Cpu.parse, quantities, "cpu", where) or 0,
        _read(Memory.parse, quantities, "memory", where) or 0,
    )


def _total(needs: Iterable[Needs]) -> Needs:
    gpus = cpu_milli = memory = 0
    for need in needs:
        gpus, cpu_milli, memory = gpus + need.gpus, cpu_milli + need.cpu_milli, memory + need.memory
    return Needs(gpus, cpu_milli, memory)


def _read(parse: Parse, quantities: Quantities, name: str, where: str) -> int | None:
    value = quantities.get(name)
    return None if value is None else _parsed(parse, value, name, where)


@lru_cache(maxsize=4096)
def _parsed(parse: Parse, value: QuantityText, name: str, where: str) -> int:
    try:
        amount = int(parse(value))
    except Unreadable as error:
        raise wrong(f"{where}{name}", value, error.allowed) from None
    if amount > _MOST:
        raise wrong(f"{where}{name}", value, f"at most {Memory(_MOST)}")
    return amount
