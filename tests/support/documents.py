"""The objects of a state file as plain documents: what people write, not what our types make of it."""

import json
import pickle
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from tests.support.times import moment

Document = dict[str, Any]
API = "rq.davidlangworthy.io/v1"
FLAVOR = "H100-80GB"


class _Loader(yaml.CSafeLoader):
    """Times stay the texts that they are in the file."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.CSafeLoader.yaml_implicit_resolvers.items()
}


_MARKER = re.compile(r"^(?=---)", re.MULTILINE)


def load(text: str) -> list[Document]:
    """Every document of a YAML or JSON text, Lists taken apart."""
    found: list[Document] = []
    for part in _MARKER.split(text):
        found += _objects([json.loads(part)]) if part.startswith('{"') else pickle.loads(_pickled(part))
    return found


@lru_cache(maxsize=4096)
def _pickled(text: str) -> bytes:
    """One document, to be copied out: a file is read again around every cycle, mostly unchanged, and YAML is slow."""
    return pickle.dumps(_objects(yaml.load_all(text, _Loader)))


def _objects(documents: Iterable[Document | None]) -> list[Document]:
    found: list[Document] = []
    for document in documents:
        if document is not None:
            found += document["items"] if str(document.get("kind", "")).endswith("List") else [document]
    return found


def dump(documents: Iterable[Document]) -> str:
    """One YAML document per object."""
    return yaml.dump_all(documents, Dumper=yaml.CSafeDumper, sort_keys=False, explicit_start=True)


def as_json(documents: Iterable[Document]) -> str:
    """All of them as one List, which is read and written a hundred times as fast."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)}) + "\n"


def read(path: Path) -> list[Document]:
    """`load` of a file."""
    return load(path.read_text(encoding="utf-8"))


def merge(target: Document, patch: Mapping[str, Any]) -> Document:
    """A JSON merge patch (RFC 7386): nested mappings merge, None removes a key."""
    merged = dict(target)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            inner = merged.get(key)
            merged[key] = merge(inner if isinstance(inner, dict) else {}, value)
        else:
            merged[key] = value
    return merged


def aged(document: Document, hours: int) -> Document:
    """The document as if made so many hours before T0."""
    return merge(document, {"metadata": {"creationTimestamp": moment(f"-{hours}h")}})


def node(name: str, gpus: int = 8, *, domain: str | None = "d1", flavor: str | None = FLAVOR) -> Document:
    """A Ready v1 Node with plenty of CPU, memory and pods."""
    labels = {"region": "us-west", "cluster": "c1", "fabric.domain": domain, "gpu.flavor": flavor}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {key: value for key, value in labels.items() if value is not None}},
        "status": {
            "allocatable": {"nvidia.com/gpu": str(gpus), "cpu": "128", "memory": "2048Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2025-12-01T00:00:00Z"}],
        },
    }


def envelope(concurrency: int, name: str = "gpus", **fields: Any) -> Document:
    """An envelope of H100s anywhere."""
    return {"name": name, "flavor": FLAVOR, "selector": {"region": "*"}, "concurrency": concurrency, **fields}


def budget(owner: str, envelopes: list[Document], name: str | None = None, **spec: Any) -> Document:
    """A Budget, by default named as its owner with dashes for colons."""
    return {
        "apiVersion": API,
        "kind": "Budget",
        "metadata": {"name": name or owner.replace(":", "-")},
        "spec": {"owner": owner, "envelopes": envelopes, **spec},
    }


def run(name: str, gpus: int, owner: str = "org:a", namespace: str = "default") -> Document:
    """A Run of H100s with nothing else said."""
    return {
        "apiVersion": API,
        "kind": "Run",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"owner": owner, "resources": {"gpuType": FLAVOR, "totalGPUs": gpus}},
    }


def policy(**spec: Any) -> Document:
    """The Policy, named `default`."""
    return {"apiVersion": API, "kind": "Policy", "metadata": {"name": "default"}, "spec": spec}


def foreign_pod(name: str, on: str, gpus: int) -> Document:
    """A running pod that Jobtree does not own."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "others"},
        "spec": {
            "nodeName": on,
            "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": str(gpus)}}}],
        },
        "status": {"phase": "Running"},
    }
