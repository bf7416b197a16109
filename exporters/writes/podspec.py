"""One pod of a run: its template (or the Policy's), the node that the plan chose, GPUs, names and the rendezvous.

The environment is what PyTorch's ``env://`` and torchrun read: MASTER_ADDR, MASTER_PORT, RANK, LOCAL_RANK, WORLD_SIZE,
NNODES, NODE_RANK. Ranks count pods, from 0, by group and node. Pods find one another by name within the run's headless
Service. What changes while a pod lives it has as files under `MOUNTED`: a cut that is announced
(`exporters.writes.announced`), and of a run whose width or ranks may change these (`exporters.writes.ranks`).
"""

from __future__ import annotations

import copy
from typing import Any, Final, NamedTuple

from exporters.writes.announced import CUT_AT, CUT_CHANCE
from jobtree.api import API_VERSION, GROUP, LABEL_CYCLE, LABEL_RUN
from jobtree.api.kinds.policy import PolicySpec
from jobtree.api.kinds.run import IndexRun, Run, RunStatus

LABEL_GROUP: Final = f"{GROUP}/group"
LABEL_RANK: Final = f"{GROUP}/rank"
ANNOTATION_NODE: Final = f"{GROUP}/node"
"""The node that it was made for, before it is bound."""
MASTER_PORT: Final = 29500
MOUNTED: Final = "/etc/jobtree"
"""Where containers have as files what changes while they live."""
_VOLUME: Final = "jobtree-told"

Object = dict[str, Any]


class Member(NamedTuple):
    """One pod of a gang: its rank among all, its group, node, GPUs and the cycle that opened its lease."""

    rank: int
    group: int
    node: str
    gpus: int
    cycle: str


def service_name(run: str) -> str:
    """The headless Service that gives a run's pods their names: `train-32-0.run-train-32`."""
    return f"run-{run}"


def hostname(run: str, rank: int) -> str:
    """The name of the pod of that rank in the Service; it outlives the pod."""
    return f"{run}-{rank}"


def host(run: Run, rank: int) -> str:
    """The same with its domain, as pods of any namespace look it up."""
    return f"{hostname(run.name, rank)}.{service_name(run.name)}.{run.namespace}.svc"


def changes(run: Run) -> bool:
    """Whether the width or the ranks of a run may change while it lives: it grows and shrinks, or has spares."""
    return run.spec.malleable is not None or bool(run.spec.spares)


def service(run: Run) -> Object:
    """The run's headless Service; pods that are not Ready yet have names too, since they look for one another."""
    return {
        "metadata": {"labels": {LABEL_RUN: run.name}, "ownerReferences": [owner(run)]},
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {LABEL_RUN: run.name}},
    }


def owner(run: Run) -> Object:
    """The reference that makes an object the run's, of an index its array's: it goes with it."""
    return {
        "apiVersion": API_VERSION, "kind": "Run", "name": run.of if isinstance(run, IndexRun) else run.name,
        "uid": run.metadata.uid, "controller": True, "blockOwnerDeletion": True,
    }  # fmt: skip


def manifest(run: Run, status: RunStatus, member: Member, total: int, policy: PolicySpec) -> Object:
    """The pod of a gang of ``total`` pods, whole; ``status``: the run's, as the cycle leaves it."""
    template: Object = copy.deepcopy(run.spec.template or {})
    given = template.get("metadata") or {}
    spec: Object = template.get("spec") or _default(policy)
    life = {LABEL_CYCLE: member.cycle} if member.cycle else {}
    labels = {**(given.get("labels") or {}), LABEL_RUN: run.name, LABEL_GROUP: str(member.group), **life}
    annotations = dict(given.get("annotations") or {})
    spec.setdefault("restartPolicy", "Never")  # else it never ends, and neither does the run
    spec |= {"hostname": hostname(run.name, member.rank), "subdomain": service_name(run.name)}
    if member.node:
        annotations[ANNOTATION_NODE] = member.node
        spec["affinity"] = _pinned(spec.get("affinity") or {}, member.node)
        _limit_gpus(spec, member.gpus, policy.resource_names)
    else:
        _ask(spec, run)
    environment = _environment(run, member, total) | _times(run, status)
    if policy.pod_defaults.slurm_env:
        environment |= _slurm(run, status, member, total)
    for container in [*spec["containers"], *(spec.get("initContainers") or [])]:
        own = container.get("env") or []
        said = {each.get("name") for each in own}
        container["env"] = [*({"name": k, "value": v} for k, v in environment.items() if k not in said), *own]
    if member.node:
        _mount(spec, run)
    return {
        "metadata": {
            "name": "-".join(filter(None, (run.name, member.cycle.lower(), str(member.rank)))),
            "labels": {**labels, LABEL_RANK: str(member.rank)},
            "annotations": annotations,
            "ownerReferences": [owner(run)],
        },
        "spec": spec,
    }


def _default(policy: PolicySpec) -> Object:
    given = policy.pod_defaults
    container: Object = {"name": "main", "image": given.image}
    if given.command:
        container["command"] = list(given.command)
    if given.args:
        container["args"] = list(given.args)
    asked = {"cpu": given.cpu and f"{int(given.cpu)}m", "memory": given.memory and str(int(given.memory))}
    if requests := {name: amount for name, amount in asked.items() if amount}:
        container["resources"] = {"requests": requests}
    return {"containers": [container], "tolerations": [dict(each) for each in given.tolerations]}


def _pinned(affinity: Object, node: str) -> Object:
    """The affinity with the one node that may take the pod; kube-scheduler checks all else as ever."""
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    at_node = dict(affinity.get("nodeAffinity") or {})
    required = dict(at_node.get("requiredDuringSchedulingIgnoredDuringExecution") or {})
    terms = required.get("nodeSelectorTerms") or [{}]
    required["nodeSelectorTerms"] = [
        {**term, "matchFields": [*(term.get("matchFields") or []), field]} for term in terms
    ]
    at_node["requiredDuringSchedulingIgnoredDuringExecution"] = required
    return {**affinity, "nodeAffinity": at_node}


def _mount(spec: Object, run: Run) -> None:
    """Annotations and ConfigMap as files; a pod begins without these where they are not there."""
    cut = [{"path": key.rpartition("/")[2], "fieldRef": {"fieldPath": f"metadata.annotations['{key}']"}}
           for key in (CUT_AT, CUT_CHANCE)]  # fmt: skip
    sources: list[Object] = [{"downwardAPI": {"items": cut}}]
    if changes(run):
        sources.append({"configMap": {"name": service_name(run.name), "optional": True}})
    spec["volumes"] = [*(spec.get("volumes") or []), {"name": _VOLUME, "projected": {"sources": sources}}]
    mount = {"name": _VOLUME, "mountPath": MOUNTED, "readOnly": True}
    for container in [*spec["containers"], *(spec.get("initContainers") or [])]:
        own = container.get("volumeMounts") or []
        if all(each.get("mountPath") != MOUNTED for each in own):  # what the template says wins
            container["volumeMounts"] = [*own, mount]


def _limit_gpus(spec: Object, gpus: int, names: tuple[str, ...]) -> None:
    """GPUs go to the container that asks for them, else to the first."""
    for container in spec["containers"]:
        resources = container.get("resources") or {}
        for part in ("limits", "requests"):
            if name := next((each for each in names if each in (resources.get(part) or {})), None):
                _set(container, name, gpus)
                return
    _set(spec["containers"][0], names[0], gpus)


def _set(container: Object, name: str, gpus: int) -> None:
    resources = container.setdefault("resources", {})
    resources["limits"] = {**(resources.get("limits") or {}), name: str(gpus)}
    if name in (resources.get("requests") or {}):
        resources["requests"][name] = str(gpus)


def _ask(spec: Object, run: Run) -> None:
    """CPU and memory of a CPU run's pod, which its first container asks for."""
    needs = run.spec.resources
    resources = spec["containers"][0].setdefault("resources", {})
    asked = {"cpu": f"{int(needs.cpu_per_pod or 0)}m", "memory": str(int(needs.memory_per_pod or 0))}
    resources["requests"] = {**(resources.get("requests") or {}), **asked}


def _environment(run: Run, member: Member, total: int) -> dict[str, str]:
    found = {
        "MASTER_ADDR": host(run, 0),
        "MASTER_PORT": str(MASTER_PORT),
        "RANK": str(member.rank),
        "LOCAL_RANK": "0",  # a pod sees its own GPUs alone
        "WORLD_SIZE": str(total),
        "NNODES": str(total),
        "NODE_RANK": str(member.rank),
        "JOBTREE_RUN": run.name,
        "JOBTREE_GROUP": str(member.group),
    }
    if isinstance(run, IndexRun):
        found |= {"JOBTREE_ARRAY": run.of, "JOBTREE_INDEX": str(run.index)}
    return found


def _times(run: Run, status: RunStatus) -> dict[str, str]:
    """What a job plans its checkpoints by: seconds, and the Unix second at which its time limit ends it."""
    end = _end(status)
    found = {
        "JOBTREE_CHECKPOINT_SECONDS": run.spec.runtime.checkpoint,
        "JOBTREE_TIME_LIMIT_SECONDS": status.time_limit,
        "JOBTREE_END_TIME": end,
    }
    return {name: str(int(value)) for name, value in found.items() if value is not None}


def _end(status: RunStatus) -> int | None:
    return None if status.started is None or status.time_limit is None else int(status.started) + int(status.time_limit)


def _slurm(run: Run, status: RunStatus, member: Member, total: int) -> dict[str, str]:
    """The same as Slurm's batch steps have it."""
    job = str(int(run.metadata.uid.replace("-", "")[:8] or "0", 16))
    found = {
        "SLURM_JOB_ID": job,
        "SLURM_JOB_NAME": run.name,
        "SLURM_JOB_PARTITION": str(run.spec.resources.gpu_type or ""),
        "SLURM_NNODES": str(total),
        "SLURM_NTASKS": str(total),
        "SLURM_NTASKS_PER_NODE": "1",
        "SLURM_NODEID": str(member.rank),
        "SLURM_PROCID": str(member.rank),
        "SLURM_LOCALID": "0",
        "SLURM_STEP_ID": "0",
        "SLURM_GPUS_ON_NODE": str(member.gpus),
        "SLURMD_NODENAME": member.node,
        "SLURM_LAUNCH_NODE_IPADDR": host(run, 0),
    }
    times = {"SLURM_JOB_START_TIME": status.started, "SLURM_JOB_END_TIME": _end(status)}
    found |= {name: str(int(value)) for name, value in times.items() if value is not None}
    if isinstance(run, IndexRun):
        found |= {"SLURM_ARRAY_JOB_ID": job, "SLURM_ARRAY_TASK_ID": str(run.index)}
    return found
