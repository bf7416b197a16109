"""Kubernetes' own Node and Pod: only the fields that Jobtree reads; all others are passed over."""

from __future__ import annotations

from jobtree.api.kinds.base import Tolerant
from jobtree.api.kinds.meta import ObjectMeta
from jobtree.api.values.scalars import Time

#: A Kubernetes quantity as it is written; `scalars.quantity` gives its value.
QuantityText = str | int | float


class Taint(Tolerant, frozen=True, kw_only=True):
    """A node's taint."""

    key: str
    effect: str = ""
    value: str = ""
    time_added: Time | None = None


class NodeSpec(Tolerant, frozen=True, kw_only=True):
    """What people set on a node."""

    unschedulable: bool = False
    taints: tuple[Taint, ...] | None = None


class NodeCondition(Tolerant, frozen=True, kw_only=True):
    """One condition of a node; `Ready` is the one that matters."""

    type: str
    status: str = "Unknown"
    last_transition_time: Time | None = None


class NodeStatus(Tolerant, frozen=True, kw_only=True):
    """What the kubelet reports."""

    allocatable: dict[str, QuantityText] = {}
    conditions: tuple[NodeCondition, ...] = ()


class Node(Tolerant, frozen=True, kw_only=True):
    """A v1 Node."""

    metadata: ObjectMeta
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def ready(self) -> NodeCondition | None:
        """The Ready condition, if the node has one."""
        return next((c for c in self.status.conditions if c.type == "Ready"), None)


class ResourceNeeds(Tolerant, frozen=True, kw_only=True):
    """Requests and limits of a container."""

    requests: dict[str, QuantityText] = {}
    limits: dict[str, QuantityText] = {}


class Container(Tolerant, frozen=True, kw_only=True):
    """A container's needs."""

    name: str = ""
    resources: ResourceNeeds = ResourceNeeds()
    restart_policy: str = ""


class Toleration(Tolerant, frozen=True, kw_only=True):
    """A pod's toleration."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class PodSpec(Tolerant, frozen=True, kw_only=True):
    """What a pod asks for."""

    node_name: str = ""
    scheduler_name: str = ""
    node_selector: dict[str, str] = {}
    tolerations: tuple[Toleration, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: dict[str, QuantityText] = {}


class PodCondition(Tolerant, frozen=True, kw_only=True):
    """One condition of a pod; `PodScheduled` tells since when it cannot be placed."""

    type: str
    status: str = "Unknown"
    reason: str = ""
    message: str = ""
    last_transition_time: Time | None = None


class PodStatus(Tolerant, frozen=True, kw_only=True):
    """What became of a pod."""

    phase: str = "Pending"
    start_time: Time | None = None
    conditions: tuple[PodCondition, ...] = ()


class Pod(Tolerant, frozen=True, kw_only=True):
    """A v1 Pod."""

    metadata: ObjectMeta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()
