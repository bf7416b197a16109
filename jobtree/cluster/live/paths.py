"""Where objects lie on the API server."""

import os
from typing import Final, NamedTuple

from jobtree.api import API_VERSION, GROUP, KINDS
from jobtree.api.crds.crds import RESOURCES, WHOLE
from jobtree.api.kinds.base import WHOLE_VERSION
from jobtree.cluster.protocol import Ref
from jobtree.world.memory import seen


class Resource(NamedTuple):
    """A kind as the API server has it: ``base`` is `/api/v1` or `/apis/GROUP/VERSION`."""

    base: str
    plural: str
    namespaced: bool
    group: str = ""
    api_version: str = "v1"


RESOURCES_OF: Final[dict[str, Resource]] = {
    "Node": Resource("/api/v1", "nodes", namespaced=False),
    "Pod": Resource("/api/v1", "pods", namespaced=True),
    "Service": Resource("/api/v1", "services", namespaced=True),
    "ConfigMap": Resource("/api/v1", "configmaps", namespaced=True),
    "Secret": Resource("/api/v1", "secrets", namespaced=True),
    "Event": Resource("/api/v1", "events", namespaced=True),
    **{
        kind: Resource(f"/apis/{API_VERSION}", RESOURCES[kind].plural, struct.NAMESPACED, GROUP, API_VERSION)
        for kind, struct in KINDS.items()
    },
}
"""The kinds that are read or written, by name."""


VARIABLE: Final = "JOBTREE_NAMESPACE"
"""Environment variable that names the planner's namespace."""
_ITS_OWN: Final = frozenset({"ConfigMap", "Secret"})
"""Kinds that the planner keeps in its namespace, which is `seen.NAMESPACE` to everything above this package."""


def system() -> str:
    """The planner's namespace on this cluster."""
    return os.environ.get(VARIABLE) or seen.NAMESPACE


def actual(kind: str, namespace: str) -> str:
    """Where the server has what lies in ``namespace`` to everything above this package."""
    return system() if kind in _ITS_OWN and namespace == seen.NAMESPACE else namespace


def collection(kind: str, namespace: str = "", resource: Resource | None = None) -> str:
    """The path of all objects of a kind, or of those in a namespace; ``resource``: the kind as otherwise served."""
    resource = resource or RESOURCES_OF[kind]
    within = f"/namespaces/{actual(kind, namespace)}" if namespace and resource.namespaced else ""
    return f"{resource.base}{within}/{resource.plural}"


def whole(kind: str) -> Resource:
    """The kind as it is created: with its status where the server takes it, so that one call does for both."""
    resource = RESOURCES_OF[kind]
    if kind not in WHOLE:
        return resource
    version = f"{GROUP}/{WHOLE_VERSION}"
    return resource._replace(base=f"/apis/{version}", api_version=version)


def path(ref: Ref, subresource: str = "") -> str:
    """The path of one object, or of a subresource of it."""
    namespace = (ref.namespace or "default") if RESOURCES_OF[ref.kind].namespaced else ""
    return f"{collection(ref.kind, namespace)}/{ref.name}" + (f"/{subresource}" if subresource else "")
