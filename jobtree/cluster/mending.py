"""What stays of a stored object that cannot be used when a good one takes its place."""

from collections.abc import Mapping
from typing import Any

import msgspec

from jobtree.api import Time
from jobtree.api.rules.decode import is_status
from jobtree.cluster.document import Document

_TEXTS = ("labels", "annotations")


def kept(broken: Document, good: Mapping[str, Any]) -> dict[str, Any]:
    """``good`` with all of ``broken`` that its kind can read beside the spec.

    That is the uid and creation time, each label and annotation that is text and that ``good`` does not state, and each
    part of the status. ``good`` has a kind of ours, metadata, and no status.
    """
    stored = broken.value()
    metadata = _mapping(stored.get("metadata"))
    merged = dict(good["metadata"])
    for part in _TEXTS:
        texts = {name: text for name, text in _mapping(metadata.get(part)).items() if isinstance(text, str)}
        if texts:
            merged[part] = {**texts, **_mapping(merged.get(part))}
    if (uid := metadata.get("uid")) and isinstance(uid, str):
        merged["uid"] = uid
    if (created := _time(metadata.get("creationTimestamp"))) is not None:
        merged["creationTimestamp"] = created
    status = {
        name: part
        for name, part in _mapping(stored.get("status")).items()
        if is_status(good["kind"], msgspec.json.encode({name: part}))
    }
    return {**good, "metadata": merged, **({"status": status} if status else {})}


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _time(value: Any) -> str | None:
    try:
        return str(Time.parse(value))
    except ValueError:
        return None
