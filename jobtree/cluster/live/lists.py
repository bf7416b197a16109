"""Everything at one revision: each kind is listed in pages, all of them exactly as they were at one point of time.

The point is what the API server had when reading began; etcd numbers the changes of all kinds in one row, so lists of
different kinds at the same number are one snapshot. A list that cannot be had at it is read again at a newer one, all
kinds with it; what is still not whole then is refused. Nothing is planned from a partial or stale view (spec §8).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from jobtree.api import LABEL_RUN, Refusal, dec_hook, enc_hook
from jobtree.api.kinds.base import ANNOTATION_CORDONED
from jobtree.api.kinds.core import Pod
from jobtree.cluster.live.client import Api, ApiError, refusal_of
from jobtree.cluster.live.paths import RESOURCES_OF, collection
from jobtree.world.memory import seen
from jobtree.world.reading.intake import Key

PAGE: Final = 10_000
"""Objects a page: with nodes of 5 KB that is 50 MB; pages of 2,000 take half as long again."""
TRIES: Final = 3
"""How often everything is read anew where the server has forgotten the revision meanwhile."""
_AT_ONCE: Final = 4
_GONE: Final = frozenset({410, 504})
"""The revision was compacted, or a server that answers has not come to it."""


class Stamp(NamedTuple):
    """Which state of an object was read.

    ``generation`` counts the changes of its spec, where its kind does; of a Node it tells who has cordoned it, which is
    all that a cycle changes of one, since its kubelet writes into it every few seconds.
    """

    version: str
    uid: str
    generation: int
    finalizers: tuple[str, ...] = ()


class Found(NamedTuple):
    """Objects as JSON, with which state of each that is, and the revision that they were read at."""

    items: dict[Key, Item]
    revision: str

    @property
    def objects(self) -> list[tuple[Key, bytes]]:
        """The objects as (key, JSON)."""
        return [(key, item.raw) for key, item in self.items.items()]

    @property
    def stamps(self) -> dict[Key, Stamp]:
        """Which state of each was read; a new mapping."""
        return {key: item.stamp for key, item in self.items.items()}


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _Page(msgspec.Struct):
    metadata: _Meta
    items: list[msgspec.Raw] = []


class _Name(msgspec.Struct, rename="camel"):
    name: str
    uid: str
    resource_version: str
    namespace: str = ""
    generation: int = 0
    finalizers: tuple[str, ...] = ()
    annotations: dict[str, str] = {}


class _Cordon(msgspec.Struct, frozen=True):
    unschedulable: bool = False


class _Head(msgspec.Struct):
    metadata: _Name
    spec: _Cordon = _Cordon()

    def stamp(self, kind: str) -> Stamp:
        """Of an object of that kind."""
        meta = self.metadata
        cordon = 1 + self.spec.unschedulable + 2 * (ANNOTATION_CORDONED in meta.annotations)
        generation = cordon if kind == "Node" else meta.generation
        return Stamp(meta.resource_version, meta.uid, generation, meta.finalizers)


class Item(NamedTuple):
    """An object as JSON, as far as anybody reads it, in bytes of its own: no page of a list stays for one of it."""

    raw: bytes
    stamp: Stamp


_PAGE: Final = msgspec.json.Decoder(_Page)
_HEAD: Final = msgspec.json.Decoder(_Head)
_POD: Final = msgspec.json.Decoder(Pod, dec_hook=dec_hook)


def stamp_of(kind: str, stored: Mapping[str, Any]) -> Stamp:
    """Which state of an object a call has answered with."""
    return msgspec.convert(stored, _Head).stamp(kind)


class Forbidden(Refusal):
    """This user may not list a kind there."""


class _Moved(Exception):  # noqa: N818 no error but news
    """The revision can no longer be had."""


def read(api: Api, kinds: Sequence[tuple[str, str]], known: Mapping[Key, Item] | None = None) -> Found:
    """All objects of ``kinds``: (kind, namespace or empty for all). Raises Refusal where they cannot be had whole.

    ``known``: of a read before: what is still in the state that it was in then is the very same item.
    """
    for _ in range(TRIES):
        revision = _newest(api, *kinds[0])
        try:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                listed = [pool.submit(_listed, api, *each, revision, known or {}) for each in kinds]
            lists = [each.result() for each in listed]
        except _Moved:
            continue
        return Found({key: item for found in lists for key, item in found}, revision)
    raise Refusal(
        f"the API server could not list everything as of one moment in {TRIES} tries; nothing is planned from a "
        "partial view: try again"
    )


class Scope(NamedTuple):
    """What a user may list, and in words what not."""

    kinds: list[tuple[str, str]]
    hidden: tuple[str, ...]


def scope(api: Api, kinds: Sequence[tuple[str, str]], own: str) -> Scope:
    """What of ``kinds`` this user may list: everywhere, in the namespace ``own``, or not at all.

    Raises Refusal where not even the Runs of ``own`` are among it.
    """
    found, hidden = list[tuple[str, str]](), list[str]()
    for kind, namespace in kinds:
        plural = RESOURCES_OF[kind].plural
        places = [namespace] if namespace or not RESOURCES_OF[kind].namespaced else ["", own]
        place, why = _listable(api, kind, places)
        if place is None and kind == "Run":
            raise Refusal(f"{why}; say -n with a namespace of yours, or ask for the role jobtree-researcher in {own}")
        if place is not None:
            found.append((kind, place))
        if place != places[0]:
            hidden.append(plural if place is None else f"{plural} outside {own}")
    return Scope(found, tuple(hidden))


def _listable(api: Api, kind: str, places: Sequence[str]) -> tuple[str | None, str]:
    """The first of ``places`` where the kind may be listed; None where in none, and the server's words for it."""
    why = ""
    for place in places:
        try:
            _newest(api, kind, place)
        except Forbidden as refusal:
            why = refusal.problem.removesuffix("; ask the cluster's administrator for the role")
        else:
            return place, ""
    return None, why


def _newest(api: Api, kind: str, namespace: str) -> str:
    page = _page(api, kind, collection(kind, namespace), {"limit": 1})
    if not page.metadata.resource_version:
        raise Refusal(f"the API server's list of {RESOURCES_OF[kind].plural} says no revision")
    return page.metadata.resource_version


def _listed(api: Api, kind: str, namespace: str, revision: str, known: Mapping[Key, Item]) -> list[tuple[Key, Item]]:
    found: list[tuple[Key, Item]] = []
    query: dict[str, str | int] = {"resourceVersion": revision, "resourceVersionMatch": "Exact", "limit": PAGE}
    while True:
        page = _page(api, kind, collection(kind, namespace), query)
        if page.metadata.resource_version != revision:
            raise _Moved
        found += _keyed(kind, page.items, known)
        if not page.metadata.continue_:
            return found
        query = {"limit": PAGE, "continue": page.metadata.continue_}


def _page(api: Api, kind: str, where: str, query: Mapping[str, str | int]) -> _Page:
    try:
        data = api.get(where, **query)
    except ApiError as error:
        if error.status in _GONE and len(query) > 1:
            raise _Moved from None
        refusal = refusal_of(error, f"{RESOURCES_OF[kind].plural} cannot be read")
        if error.status == 403:
            raise Forbidden(refusal.problem) from None
        raise refusal from None
    try:
        return _PAGE.decode(data)
    except msgspec.DecodeError as error:
        raise Refusal(f"the API server's list of {RESOURCES_OF[kind].plural} cannot be read: {error}") from None


def _keyed(kind: str, items: Sequence[msgspec.Raw], known: Mapping[Key, Item]) -> Iterator[tuple[Key, Item]]:
    group = RESOURCES_OF[kind].group
    for raw in items:
        head = _HEAD.decode(raw)
        meta = head.metadata
        namespace = seen.NAMESPACE if kind == "ConfigMap" else meta.namespace
        key, stamp = Key(group, kind, namespace, meta.name), head.stamp(kind)
        before = known.get(key)
        if before is not None and before.stamp == stamp:
            yield key, before
        elif kind == "Pod":
            yield key, Item(_trimmed(raw), stamp)
        else:
            yield key, Item(bytes(raw) if namespace == meta.namespace else _moved(raw, namespace), stamp)


def _moved(raw: msgspec.Raw, namespace: str) -> bytes:
    """An object as if it lay in another namespace."""
    item = msgspec.json.decode(raw)
    return msgspec.json.encode({**item, "metadata": {**item["metadata"], "namespace": namespace}})


def _trimmed(raw: msgspec.Raw) -> bytes:
    """A pod without what nobody reads: nine tenths of it, where a fleet has a hundred thousand of them.

    A run's own pod has the Run as its controller; what only says so by its label is foreign (spec §10).
    """
    try:
        pod = _POD.decode(raw)
    except msgspec.DecodeError:
        return bytes(raw)  # it will be quarantined, with the sentence that says why
    meta = pod.metadata
    if LABEL_RUN in meta.labels and not any(each.controller for each in meta.owner_references):
        labels = {key: value for key, value in meta.labels.items() if key != LABEL_RUN}
        pod = replace(pod, metadata=replace(meta, labels=labels))
    return msgspec.json.encode(pod, enc_hook=enc_hook)
