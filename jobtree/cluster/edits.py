"""Writes on the documents of a state file, by the rules that an API server with our CRDs would keep."""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from jobtree.api import GROUP, KINDS, LABEL_RUN, KindObject, Refusal, Time, decode
from jobtree.api.kinds.core import Node, Pod
from jobtree.api.rules.decode import is_status
from jobtree.api.rules.kinds import check_object, check_update
from jobtree.cluster import mending
from jobtree.cluster.document import Document, StateText
from jobtree.cluster.protocol import Ref, Write
from jobtree.world.reading import leases
from jobtree.world.reading.intake import Key, key_of

_UID_SPACE: Final = uuid.uuid5(uuid.NAMESPACE_DNS, GROUP)
_RULED_STATUSES: Final = frozenset({"Lease"})
"""Kinds with rules between status and spec, or between a status and the one before; of the others its shape is all."""
_SERVER_SET: Final = ("uid", "creationTimestamp", "resourceVersion", "generation", "managedFields", "selfLink")
"""Metadata that a server adds: it does not make two objects different."""


def merge_patch(target: Any, patch: Any) -> Any:
    """RFC 7386: mappings merge, null removes, anything else replaces. ``target`` stays as it is."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value) if isinstance(value, dict) else value
    return merged


def uid_of(key: Key, created: Time) -> str:
    """The uid of an object that was written by hand: UUIDv5 of `KIND/NAMESPACE/NAME/TIME` (spec §10)."""
    return str(uuid.uuid5(_UID_SPACE, f"{key.kind}/{key.namespace}/{key.name}/{created}"))


def seen(document: Document, at: Time) -> dict[str, Any] | None:
    """The object with the uid and creation time that its first sight at ``at`` gives it.

    None where it has both, is of no kind that needs them, or has metadata that cannot be read (which reading it says).
    """
    key, metadata = document.key, document.head.metadata
    if metadata is None or (metadata.uid and metadata.creationTimestamp) or not _has_lives(document):
        return None
    try:
        created = Time.parse(metadata.creationTimestamp) if metadata.creationTimestamp else at
    except ValueError:
        return None
    value = document.value()
    given = {"creationTimestamp": str(created), "uid": metadata.uid or uid_of(key, created)}
    return value | {"metadata": value["metadata"] | given}


def _has_lives(document: Document) -> bool:
    """Does it matter whether an object was made again: one of ours, a Node, and a pod of a run of ours?"""
    key = document.key
    if key.group == GROUP or (key.group, key.kind) == ("", "Node"):
        return True
    if (key.group, key.kind) != ("", "Pod"):
        return False
    labels = document.value()["metadata"].get("labels")
    return isinstance(labels, dict) and LABEL_RUN in labels


def first_sight(text: StateText, at: Time) -> None:
    """Gives objects their uid and creation time for good; one that cannot be used stays as it is."""
    for document in list(text.documents()):
        value = seen(document, at)
        if value is not None and _usable(document.key, value):
            text.replace(document.key, value)


def _usable(key: Key, value: dict[str, Any]) -> bool:
    try:
        return key.kind in (*KINDS, "Node", "Pod") and bool(decode(key.kind, value))
    except Refusal:
        return False


def apply(text: StateText, writes: Sequence[Write], at: Time) -> None:
    """Carries the writes out in their order, on ``text`` only.

    Raises Refusal naming the object: a patch of what is not there, a create of what is there and different, and
    whatever leaves an object of ours broken or changes what may not change.
    """
    for write in writes:
        key = key_for(write.ref)
        if write.verb == "delete":
            if key in text.by_key:
                text.remove(key)
        elif write.verb == "create" or (write.verb == "merge" and key not in text.by_key):
            _create(text, key, write, at)
        elif write.verb == "replace":
            _replace(text, key, write, at)
        else:
            _patch(text, key, write, at)


def key_for(ref: Ref) -> Key:
    """The key of the object that a reference names."""
    return key_of(f"{GROUP}/v1" if ref.kind in KINDS else "v1", ref.kind, ref.namespace, ref.name)


def _create(text: StateText, key: Key, write: Write, at: Time) -> None:
    body = _named(key, write.body)
    there = text.by_key.get(key)
    if there is not None:
        if _comparable(there[1].value()) != _comparable(body):
            raise Refusal("another object of this name is there already; choose another name", subject=str(key))
        return
    if key.group == GROUP:
        _stamp(key, body["metadata"], at)
        _check(key, body)
    text.append(body)


def _stamp(key: Key, metadata: dict[str, Any], at: Time) -> None:
    """Gives new metadata the creation time and uid that it does not state."""
    metadata.setdefault("creationTimestamp", str(at))
    metadata.setdefault("uid", uid_of(key, Time.parse(metadata["creationTimestamp"])))


def _named(key: Key, body: Mapping[str, Any]) -> dict[str, Any]:
    """The object with its key in its metadata, which is a fresh mapping."""
    metadata = {**body.get("metadata", {}), "name": key.name}
    if key.namespace:
        metadata["namespace"] = key.namespace
    return {**body, "metadata": metadata}


def _replace(text: StateText, key: Key, write: Write, at: Time) -> None:
    """Puts an object in place of one that cannot be used; so what may not change otherwise may change here.

    A Node, whose status is no cycle's, is replaced whole.
    """
    there = text.by_key.get(key)
    if there is None:
        _create(text, key, write, at)
        return
    if key.group != GROUP:
        text.replace(key, _named(key, write.body))
        return
    after = mending.kept(there[1], _named(key, write.body))
    _stamp(key, after["metadata"], at)
    _check(key, after)
    text.replace(key, after)


def _comparable(value: Mapping[str, Any]) -> dict[str, Any]:
    """What makes an object the same: all but its status and what a server sets."""
    metadata = {name: part for name, part in value["metadata"].items() if name not in _SERVER_SET}
    return {**value, "metadata": metadata, "status": None}


def _patch(text: StateText, key: Key, write: Write, at: Time) -> None:
    there = text.by_key.get(key)
    if there is None:
        raise Refusal("it is not there any more, so it cannot be changed; run the command again", subject=str(key))
    document = there[1]
    if write.subresource == "status":
        _patch_status(text, key, document, write.body.get("status", {}), at)
        return
    if "status" in write.body:
        raise ValueError(f"{write.ref}: a patch of the status says subresource='status'")
    before = document.value()
    after = merge_patch(before, dict(write.body))
    if after == before:
        return
    if _identity(after) != _identity(before):
        raise Refusal("kind, namespace and name of an object never change", subject=str(key))
    _check_change(key, before, after, at)
    text.replace(key, after)


def _patch_status(text: StateText, key: Key, document: Document, patch: Mapping[str, Any], at: Time) -> None:
    """Statuses come by the ten thousand, so the rest of such an object is neither read nor written anew."""
    members = document.members()
    before = msgspec.json.decode(members["status"]) if "status" in members else None
    after = merge_patch(before, dict(patch))
    if after == before:
        return
    raw = msgspec.json.encode(after, order="sorted")
    if key.group == GROUP and (key.kind in _RULED_STATUSES or not is_status(key.kind, raw)):
        value = document.value()
        _check_change(key, value, value | {"status": after}, at)
    text.replace_members(key, members | {"status": msgspec.Raw(raw)})


def _check_change(key: Key, before: dict[str, Any], after: dict[str, Any], at: Time) -> None:
    if key.group == GROUP and key.kind == "Lease" and _contradicts_itself(before, at):
        was, now = (leases.read(msgspec.json.encode(each), at)[0] for each in (before, after))
        if was.status.closed and not now.status.closed:
            raise Refusal("a Lease that is closed stays closed", subject=str(key))
        check_update(leases.as_begun(was), leases.as_begun(now))  # its status may be mended, or go on as it was read
    elif key.group == GROUP:
        changed = _check(key, after)
        if _usable(key, before):  # any change that mends a broken object is welcome
            check_update(_decode(key, before), changed)


def _contradicts_itself(lease: dict[str, Any], at: Time) -> bool:
    """Whether a Lease is read otherwise than it says."""
    try:
        return bool(leases.read(msgspec.json.encode(lease), at)[1])
    except Refusal:
        return False


def _identity(value: Mapping[str, Any]) -> tuple[Any, ...]:
    metadata = value.get("metadata") or {}
    return value.get("apiVersion"), value.get("kind"), metadata.get("namespace"), metadata.get("name")


def _decode(key: Key, value: dict[str, Any]) -> KindObject:
    item = decode(key.kind, value)
    assert not isinstance(item, Node | Pod), "only kinds of the group are decoded here"
    return item


def _check(key: Key, value: dict[str, Any]) -> KindObject:
    item = _decode(key, value)
    check_object(item)
    return item
