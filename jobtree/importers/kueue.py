"""Kueue's queues as Budgets, and Jobs that name a LocalQueue as Runs.

A ClusterQueue is a Budget with an envelope for each flavor of GPUs; queues of one cohort share as a family; a
LocalQueue binds its namespace. Kueue's order by priority, and what it preempts, have no counterpart.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from jobtree.api import Duration
from jobtree.api.values.errors import Refusal, Unreadable, show
from jobtree.api.values.scalars import parse_count
from jobtree.importers.made import Document, Made, name_of

QUEUE: Final = "kueue.x-k8s.io/queue-name"
_FLAVORS: Final = ("gpu.flavor", "nvidia.com/gpu.product")
"""Node labels that say what GPUs there are."""
_REFUSED: Final = ("priorityClassName", "schedulerName", "nodeName")
"""Fields of a pod that a Run's template may not have."""


@dataclass(frozen=True)
class _Queue:
    """A ClusterQueue: whose Budget it is, and the GPU flavors that it has, by the name of Kueue's."""

    owner: str
    flavors: Mapping[str, str]


def read(made: Made, documents: Iterable[Document]) -> None:
    """Adds a Budget for each ClusterQueue, then a Run for each Job of a queue. Raises Refusal."""
    kinds: dict[str, list[Document]] = {}
    for each in documents:
        kinds.setdefault(str(each.get("kind")), []).append(each)
    labels = {_name(each): dict(each["spec"].get("nodeLabels", {})) for each in kinds.pop("ResourceFlavor", [])}
    locals_ = kinds.pop("LocalQueue", [])
    queues = {_name(each): _budget(made, each, labels, locals_) for each in kinds.pop("ClusterQueue", [])}
    of_local = {(_space(each), _name(each)): each["spec"]["clusterQueue"] for each in locals_}
    for job in kinds.pop("Job", []):
        asked = job["metadata"].get("labels", {}).get(QUEUE)
        if asked is None:
            made.notes.append(f"Job {_name(job)}: left out: no label {QUEUE}")
            continue
        queue = queues.get(of_local.get((_space(job), asked), ""))
        if queue is None:
            raise Refusal(f"{_subject(job)}: there is no LocalQueue {asked} in its namespace with a ClusterQueue")
        _run(made, job, queue)
    for kind, rest in sorted(kinds.items()):
        made.notes += [f"{kind} {_name(each)}: left out" for each in rest]


def _budget(made: Made, queue: Document, labels: Mapping[str, dict[str, str]], locals_: list[Document]) -> _Queue:
    spec, name = queue["spec"], _name(queue)
    cohort = spec.get("cohortName") or spec.get("cohort")
    owner = f"org:{cohort}:{name}" if cohort else f"org:{name}"
    envelopes, flavors = [], {}
    for flavor, resource in _quotas(spec):
        said = labels.get(flavor, {})
        gpus = flavors[flavor] = next((said[key] for key in _FLAVORS if key in said), flavor)
        selector = {key: value for key, value in said.items() if key not in _FLAVORS} or {"region": "*"}
        quota = _count(f"ClusterQueue {name}", f"nominalQuota of {flavor}", resource.get("nominalQuota", 0))
        bounds = [key for key in ("borrowingLimit", "lendingLimit") if key in resource]
        if bounds:
            made.notes.append(f"ClusterQueue {name}: left out of flavor {flavor}: {', '.join(bounds)}")
        if quota:
            envelope = {"name": name_of(flavor), "flavor": gpus, "selector": selector, "concurrency": quota}
            envelopes.append(envelope | {"sharing": "family" if cohort else "none"})
        else:
            made.notes.append(f"ClusterQueue {name}: left out: flavor {flavor}, whose quota is 0")
    if left := sorted({"admissionChecks", "fairSharing", "flavorFungibility", "preemption"} & spec.keys()):
        made.notes.append(f"ClusterQueue {name}: left out: {', '.join(left)}")
    spaces = sorted({_space(each) for each in locals_ if each["spec"]["clusterQueue"] == name})
    bound = {"namespaces": spaces} if spaces else {}
    parents = {"parents": [f"org:{cohort}"]} if cohort else {}
    if not envelopes:
        made.notes.append(f"ClusterQueue {name}: left out: it has no GPUs")
        return _Queue(owner, flavors)
    made.add("Budget", {"name": name}, {"owner": owner, **bound, **parents, "envelopes": envelopes})
    return _Queue(owner, flavors)


def _quotas(spec: Document) -> Iterator[tuple[str, Document]]:
    """(flavor, its quota of GPUs)."""
    for group in spec.get("resourceGroups", []):
        for flavor in group.get("flavors", []):
            yield from ((flavor["name"], each) for each in flavor["resources"] if each["name"].endswith("/gpu"))


def _run(made: Made, job: Document, queue: _Queue) -> None:
    name, spec = _name(job), job["spec"]
    pod: Document = dict(spec["template"].get("spec", {}))
    for key in [key for key in _REFUSED if key in pod]:
        made.notes.append(f"Job {name}: left out: {key}")
        del pod[key]
    pods = _count(_subject(job), "spec.parallelism", spec.get("parallelism", 1))
    if spec.get("completions", pods) != pods:
        made.notes.append(f"Job {name}: left out: completions {spec['completions']}; a Run has {pods} pods at once")
    gpus = sum(_gpus(job, each) for each in pod.get("containers", []))
    if not gpus:
        made.notes.append(f"Job {name}: left out: it asks for no GPUs")
        return
    flavors = sorted({*queue.flavors.values()})
    said = [flavor for flavor in flavors if flavor in pod.get("nodeSelector", {}).values()]
    if len(said or flavors) != 1:
        raise Refusal(f"{_subject(job)}: it selects none of the {len(flavors)} flavors of GPUs of its queue")
    resources = {"gpuType": (said or flavors)[0], "totalGPUs": pods * gpus, "gpusPerPod": gpus}
    limit = spec.get("activeDeadlineSeconds")
    seconds = _count(_subject(job), "spec.activeDeadlineSeconds", limit or 0)
    runtime = {"runtime": {"timeLimit": str(Duration(seconds))}} if seconds else {}
    metadata = {"name": name, "namespace": _space(job)}
    made.add("Run", metadata, {"owner": queue.owner, "resources": resources, **runtime, "template": {"spec": pod}})


def _gpus(job: Document, container: Document) -> int:
    asked: dict[str, Any] = container.get("resources", {})
    limits = asked.get("limits", {}) | asked.get("requests", {})
    return sum(
        _count(_subject(job), resource, count) for resource, count in limits.items() if resource.endswith("/gpu")
    )


def _count(subject: str, field: str, value: Any) -> int:
    """A whole number as Kubernetes writes it: ``8``, ``"8"``, ``8k``. Raises Refusal."""
    try:
        return parse_count(value if isinstance(value, str | int | float) else show(value))
    except Unreadable as unreadable:
        raise Refusal(f"{field}: {unreadable}", subject=subject) from None


def _name(document: Document) -> str:
    return str(document["metadata"]["name"])


def _space(document: Document) -> str:
    return str(document["metadata"].get("namespace", "default"))


def _subject(document: Document) -> str:
    return f"{document['kind']} {_space(document)}/{_name(document)}"
