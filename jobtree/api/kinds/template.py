"""What Jobtree says of a run's pod template; all else in it is the business of Kubernetes' own validation (spec §1)."""

from __future__ import annotations

from typing import Any, Final

from jobtree.api.kinds.base import DEFAULT_RESOURCE_NAMES

#: What a template may not set, and why.
FORBIDDEN: Final = {
    "priorityClassName": "Jobtree has no priorities",
    "schedulerName": "kube-scheduler binds the pods",
    "nodeName": "the plan chooses the nodes",
    "resourceClaims": "devices that are claimed are not counted",
}
#: Most containers of a pod, and most init containers: the server adds their GPUs up.
MAX_CONTAINERS: Final = 32
_COUNT: Final[dict[str, Any]] = {
    "x-kubernetes-int-or-string": True,
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "maxLength": 20,
}


def _open(properties: dict[str, Any]) -> dict[str, Any]:
    """An object of which some properties are known, or none: an empty list of them is not what a server stores."""
    known = {"properties": properties} if properties else {}
    return {"type": "object", "x-kubernetes-preserve-unknown-fields": True, **known}


_AMOUNTS: Final = _open(dict.fromkeys(DEFAULT_RESOURCE_NAMES, _COUNT))
_CONTAINER: Final = _open({"resources": _open({"limits": _AMOUNTS, "requests": _AMOUNTS})})
_CONTAINERS: Final[dict[str, Any]] = {"type": "array", "maxItems": MAX_CONTAINERS, "items": _CONTAINER}
_NONE: Final[dict[str, Any]] = {"type": "array", "maxItems": 0, "items": _open({})}

#: What of a template the API server checks.
TEMPLATE_SCHEMA: Final[dict[str, Any]] = {
    "required": ["spec"],
    "properties": {
        "spec": {
            "required": ["containers"],
            **_open(
                {
                    "containers": {**_CONTAINERS, "minItems": 1},
                    "initContainers": _CONTAINERS,
                    **{field: {"type": "string"} for field in FORBIDDEN},
                    "resourceClaims": _NONE,
                }
            ),
        }
    },
}
