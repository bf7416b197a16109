"""Manifests: the objects of files that people submit, each with all that is wrong with it said at once."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jobtree.api import API_VERSION, GROUP, KindObject
from jobtree.api.kinds.core import Node, Pod
from jobtree.api.values.counted import named
from jobtree.api.values.errors import Refusal, Refusals
from jobtree.cli.common import files

if TYPE_CHECKING:
    from jobtree.cluster.document import Document
    from jobtree.world.reading.intake import Key


class Manifest(NamedTuple):
    """An object as it is to be written, and as it was understood; ``subject``: how sentences name it."""

    subject: str
    value: dict[str, Any]
    item: KindObject | Node


KINDS: Final = ("Run", "Budget", "Policy")
"""What can be submitted anywhere."""
_SERVERS: Final = frozenset(
    {
        "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "resourceVersion",
        "selfLink", "finalizers", "ownerReferences", "managedFields",
    }
)  # fmt: skip
"""Metadata that is not the submitter's to say: a server drops it, or sets it itself. A Node to a file keeps it."""


class Place(NamedTuple):
    """The namespace of Runs that say none: what ``-n`` says, else the reader's own."""

    said: str | None
    else_: str = "default"


def read(given: Sequence[str], place: Place, *, follow: str | None = None, nodes: bool = False) -> list[Manifest]:
    """The objects of the files, in their order; ``-`` is stdin. ``nodes``: whether Nodes may be among them.

    Raises Refusal, naming the object or the file, for what cannot be submitted: all of it at once.
    """
    found: list[Manifest] = []
    refusals: list[Refusal] = []
    for file in given:
        for made in _documents(file, place, follow, (*KINDS, "Node") if nodes else KINDS):
            if isinstance(made, Refusal):
                refusals.append(made if made.subject else made.about(file))
            else:
                found.append(made)
    if refusals:
        raise Refusals(refusals) if len(refusals) > 1 else refusals[0]
    return found


def _documents(file: str, place: Place, follow: str | None, kinds: Sequence[str]) -> Iterator[Manifest | Refusal]:
    from jobtree.cluster.document import parse

    data = sys.stdin.buffer.read() if file == "-" else files.read(Path(file))
    try:
        text = parse(data)
    except Refusal as refusal:
        yield refusal
        return
    strays: dict[str, list[str]] = {}
    for document in text.documents():
        if document.key.kind not in (*kinds, "List"):
            strays.setdefault(document.key.kind, []).append(str(document.key))
            continue
        try:
            value = _placed(document, place, follow, kinds)
        except Refusal as refusal:
            yield refusal
        else:
            yield from _understood(document.key, value)
    for names in strays.values():
        yield Refusal(f"{named(names, most=3)} cannot be submitted; allowed are {', '.join(kinds)}")


def _understood(key: Key, value: dict[str, Any]) -> Iterator[Manifest | Refusal]:
    from jobtree.api import decode
    from jobtree.api.rules.faults import faults

    wrong = faults(key.kind, value)
    yield from wrong
    if not wrong:
        item = decode(key.kind, value)
        assert not isinstance(item, Pod), "no Pod is submitted"
        yield Manifest(f"Node {key.name}" if isinstance(item, Node) else item.subject, value, item)


def _placed(document: Document, place: Place, follow: str | None, kinds: Sequence[str]) -> dict[str, Any]:
    """The object as it is to be written. Raises Refusal where it is none that can be submitted."""
    from jobtree.api.values.errors import missing, wrong

    key, value = document.key, document.value()
    if key.kind == "List" and value.get("items") is None:
        raise Refusal(f"the List holds no objects; allowed are {', '.join(kinds)}")
    api_version, group = ("v1", "") if key.kind == "Node" else (API_VERSION, GROUP)
    if key.group != group:
        said = value.get("apiVersion")
        refusal = wrong("apiVersion", said, api_version) if said else missing("apiVersion", api_version)
        raise refusal.about(str(key))
    if key.kind == "Node":
        return value
    value.pop("status", None)  # cycles write that
    if isinstance(value.get("metadata"), dict):
        value["metadata"] = {name: part for name, part in value["metadata"].items() if name not in _SERVERS}
    if key.kind != "Run":
        return value
    placed = _in_namespace(value, key, place)
    if follow is not None:
        _add_follow(placed, key, follow)
    return placed


def _in_namespace(value: dict[str, Any], key: Key, place: Place) -> dict[str, Any]:
    """A Run in its namespace: its own, else ``-n``'s, else the reader's. Raises Refusal where the first two differ."""
    if not isinstance(value.get("metadata"), dict):
        return value
    own = value["metadata"].get("namespace")
    if own and place.said and own != place.said:
        raise Refusal(f"{key} says namespace {own}, and -n says {place.said}; say one of them")
    return {**value, "metadata": {**value["metadata"], "namespace": own or place.said or place.else_}}


def _add_follow(value: dict[str, Any], key: Key, upstream: str) -> None:
    """Raises Refusal where the upstream run is named with another namespace than the Run's own."""
    said, slash, upstream = upstream.removeprefix("run/").rpartition("/")
    own = (value.get("metadata") or {}).get("namespace")
    if slash and said != own:
        raise Refusal(f"{key} is in namespace {own}, and --follow names a run in {said}; a run follows runs of its own")
    spec = value.get("spec")
    if isinstance(spec, dict):
        follow = spec.setdefault("follow", {})
        if isinstance(follow, dict):
            follow["after"] = [*(each for each in follow.get("after", []) if each != upstream), upstream]
