"""What Jobtree says of a run's pod template; all else in it is the business of Kubernetes' own validation (spec §1)."""

from __future__ import annotations

from typing import Any, Final

#: What a template may not set, and why.
FORBIDDEN: Final = {
    "priorityClassName": "Jobtree has no priorities",
    "schedulerName": "kube-scheduler binds the pods",
    "nodeName": "the plan chooses the nodes",
}

#: What of a template the API server checks.
TEMPLATE_SCHEMA: Final[dict[str, Any]] = {
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "required": ["containers"],
            "properties": {
                "containers": {
                    "type": "array",
                    "minItems": 1,
                    "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
                **{field: {"type": "string"} for field in FORBIDDEN},
            },
        }
    },
}
