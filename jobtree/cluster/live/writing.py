"""Writes as calls: in the order of spec §8, side by side where they may be, and twice without harm.

A call may have worked although its answer was lost, so each is such that it can be repeated: a create that finds its
own object, a patch that finds what it wants, a delete that finds nothing have done their work. What a stale read could
harm (ledgers, balances, Plans, what people edit) is written under the resourceVersion that was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from itertools import groupby
from typing import Any, Final

import msgspec

from jobtree.api import LABEL_RUN, Refusal
from jobtree.cluster.live.client import Api, ApiError, refusal_of
from jobtree.cluster.live.lists import Stamp, stamp_of
from jobtree.cluster.live.paths import RESOURCES_OF, Resource, actual, collection, path, whole
from jobtree.cluster.protocol import Ref, Write
from jobtree.world.reading.intake import Key, Notice

AT_ONCE: Final = 8
"""Most writes at the same time: more bring nothing where etcd writes one after another."""
MERGE: Final = "application/merge-patch+json"
FAILING: Final = frozenset({401, 408, 429, *range(500, 600)})
"""Answers that say something of the server, or of who asks, not of the object."""
_ITS_OWN: Final = frozenset({"Pod", "Service", "Event"})
_LEDGERS: Final = frozenset({"Lease", "Reservation", "Plan", "ConfigMap"})
_GONE: Final = "it is gone; run the command again"
_MAY_BE_GONE: Final = frozenset({"Run", "Budget", "Pod"})
"""Kinds that people delete; what is gone is not to be told anything."""

Object = dict[str, Any]


class Writer:
    """Carries out writes on top of the states in ``stamps``, which it brings up to date.

    ``left_out``: pods that the server does not take, for a quota or a template that it does not like.
    """

    def __init__(self, api: Api, stamps: dict[Key, Stamp]) -> None:
        self._api = api
        self._stamps = stamps
        self.left_out: list[Notice] = []
        self._unserved: dict[tuple[str, str], str] = {}

    def all(self, writes: Sequence[Write]) -> None:
        """Each step of `steps` is done before the next begins. Raises Refusal; what was not begun by then is not."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for step in steps(writes):
                futures = [pool.submit(self._in_order, each) for each in step]
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                if failed := next((error for each in done if (error := each.exception()) is not None), None):
                    pool.shutdown(cancel_futures=True)
                    raise failed

    def _in_order(self, writes: Iterable[Write]) -> None:
        for write in writes:
            self._one(write)

    def _one(self, write: Write) -> None:
        try:
            getattr(self, f"_{write.verb}")(write)
        except ApiError as error:
            if error.status in FAILING:  # that is not the object's fault
                raise refusal_of(error, f"{write.ref} could not be written") from None
            self._refused(write, refusal_of(error, "it cannot be written").about(str(write.ref)))
        except Refusal as refusal:
            if not refusal.subject:
                raise
            self._refused(write, refusal)

    def _refused(self, write: Write, refusal: Refusal) -> None:
        """One run's pods, ranks and Events are its own trouble: the rest of the plan is carried out."""
        if write.ref.kind not in _ITS_OWN and write.verb != "merge":
            raise refusal
        if write.ref.kind == "Service":
            self._unserved[_run_of(write)] = refusal.problem
        self.left_out.append(Notice(write.ref.kind, write.ref.namespace, write.ref.name, refusal.problem))

    def _create(self, write: Write) -> None:
        """A pod waits for the Service that gives it its name: as long as pods are missing, both are tried again."""
        if write.ref.kind == "Pod" and (problem := self._unserved.get(_run_of(write))) is not None:
            raise Refusal(f"its Service was not taken: {problem}", subject=str(write.ref))
        plain, served = RESOURCES_OF[write.ref.kind], whole(write.ref.kind)
        try:
            self._made(write, served)
        except ApiError as error:
            if served == plain or (error.status, error.reason) != (404, ""):
                raise
            self._made(write, plain)  # the cluster's CRDs are of before that version

    def _made(self, write: Write, resource: Resource) -> None:
        ref, body = write.ref, _named(write.ref, write.body, resource)
        where = collection(ref.kind, ref.namespace or "default", resource)
        try:
            stored = self._call("POST", where, ref, body)
        except ApiError as error:
            if error.status != 409:
                raise
            found = self._get(ref)
            stored = self._call("POST", where, ref, body) if found is None else self._adopted(ref, found, body)
            if not _holds(_identity(stored), _identity(body)):
                raise Refusal("it is there already, and is another one", subject=str(ref)) from None
        status = body.get("status")
        if status and not stored.get("status"):  # where it is a subresource, what comes with a create is dropped
            self._call("PATCH", path(ref, "status"), ref, {"status": status})

    def _adopted(self, ref: Ref, found: Object, body: Object) -> Object:
        """A Service that a Run of this name has left, gone or about to, is its namesake's; all else stays as it is."""
        owners, own = (each["metadata"].get("ownerReferences") or [] for each in (found, body))
        names, mine = ([(each["kind"], each["name"]) for each in refs] for refs in (owners, own))
        if ref.kind != "Service" or names != mine or _holds(owners, own):
            return found
        meta = {"ownerReferences": own, "resourceVersion": found["metadata"]["resourceVersion"]}
        try:
            return self._call("PATCH", path(ref), ref, {"metadata": meta})
        except ApiError as error:
            if error.status not in {404, 409}:
                raise
            now = self._get(ref)
            if now is None:  # collected meanwhile
                return self._call("POST", collection(ref.kind, ref.namespace), ref, body)
            if not _holds(now["metadata"].get("ownerReferences"), own):
                raise
            return now

    def _patch(self, write: Write) -> None:
        ref, body = write.ref, dict(write.body)
        is_status = write.subresource == "status"
        if is_status:
            body = {"status": body.get("status")}
        told = is_status or ref.kind == "Pod"  # of a Pod the planner's own annotations, which nobody else writes
        guarded = ref.kind in _LEDGERS or not told
        where = path(ref, write.subresource)
        try:
            self._call("PATCH", where, ref, self._guarded(ref, body) if guarded else body)
        except ApiError as error:
            if error.status == 404 and told and ref.kind in _MAY_BE_GONE:
                return
            if error.status == 404:
                raise Refusal(_GONE, subject=str(ref)) from None
            if error.status != 409:
                raise
            self._again(ref, body, where)

    def _again(self, ref: Ref, body: Object, where: str) -> None:
        """A patch whose object is not as it was read: done already, or still possible, or refused."""
        stored, known = self._get(ref), self._stamps.get(_key(ref))
        if stored is None:
            raise Refusal(_GONE, subject=str(ref))
        if _holds(stored, body):
            self._learn(ref, stored)
            return
        found = stamp_of(ref.kind, stored)
        if known is not None and found.version == known.version:  # nothing has happened to it after all
            self._call("PATCH", where, ref, self._guarded(ref, body))
            return
        if known is None or "status" in body or not known.generation or found[1:] != known[1:]:
            raise Refusal("it was changed by somebody else in the meantime; run the command again", subject=str(ref))
        self._learn(ref, stored)  # only its status moved, and this patch says nothing of it
        self._call("PATCH", where, ref, self._guarded(ref, body))

    def _merge(self, write: Write) -> None:
        """Without a look at what is there, which the planner may not have the right to read."""
        ref, resource = write.ref, RESOURCES_OF[write.ref.kind]
        body, where = _named(ref, write.body, resource), collection(ref.kind, ref.namespace or "default")
        for method, place, passed in (
            ("PATCH", path(ref), {404, 409}),
            ("POST", where, {409}),
            ("PATCH", path(ref), set()),
        ):
            try:
                self._call(method, place, ref, body)
            except ApiError as error:
                if error.status not in passed:
                    raise
            else:
                return

    def _replace(self, write: Write) -> None:
        stored = self._get(write.ref)
        if stored is None:
            self._create(write)
            return
        old = stored["metadata"]
        meta = {**write.body.get("metadata", {}), "resourceVersion": old["resourceVersion"]}
        for part in ("labels", "annotations"):
            if joined := {**(old.get(part) or {}), **(meta.get(part) or {})}:
                meta[part] = joined
        if old.get("finalizers"):
            meta["finalizers"] = old["finalizers"]
        self._call("PUT", path(write.ref), write.ref, {**write.body, "metadata": meta})

    def _delete(self, write: Write) -> None:
        known = self._stamps.get(_key(write.ref))
        body: Object = {"apiVersion": "v1", "kind": "DeleteOptions", **write.body}
        if known is not None:
            body["preconditions"] = {"uid": known.uid}
        try:
            self._api.call("DELETE", path(write.ref), body)
        except ApiError as error:
            if error.status == 409:  # another one has the name by now; the one that was meant is gone
                return
            if error.status != 404:
                raise

    def _guarded(self, ref: Ref, body: Object) -> Object:
        known = self._stamps.get(_key(ref))
        if known is None:
            return body
        return {**body, "metadata": {**body.get("metadata", {}), "resourceVersion": known.version}}

    def _get(self, ref: Ref) -> Object | None:
        found = self._api.find(path(ref))
        return None if found is None else msgspec.json.decode(found, type=Object)

    def _call(self, method: str, where: str, ref: Ref, body: Object) -> Object:
        kind = MERGE if method == "PATCH" else "application/json"
        stored: Object = msgspec.json.decode(self._api.call(method, where, body, kind=kind))
        self._learn(ref, stored)
        return stored

    def _learn(self, ref: Ref, stored: Object) -> None:
        self._stamps[_key(ref)] = stamp_of(ref.kind, stored)


def steps(writes: Iterable[Write]) -> Iterator[list[list[Write]]]:
    """Writes that may be done side by side: neighbours of one kind, all creates or none, by object.

    What concerns one object stays in its order; so do closures before creations, and those before statuses.
    """
    for _, together in groupby(writes, key=lambda each: (each.ref.kind, each.verb == "create")):
        of_each: dict[Ref, list[Write]] = {}
        for write in together:
            of_each.setdefault(write.ref, []).append(write)
        yield list(of_each.values())


def _named(ref: Ref, body: Mapping[str, Any], resource: Resource) -> Object:
    """An object with what says which it is."""
    metadata = {**body.get("metadata", {}), "name": ref.name}
    if resource.namespaced:
        metadata["namespace"] = actual(ref.kind, ref.namespace or "default")
    return {**body, "apiVersion": resource.api_version, "kind": ref.kind, "metadata": metadata}


def _run_of(write: Write) -> tuple[str, str]:
    """Namespace and name of the Run whose label a Pod or Service has."""
    return write.ref.namespace, write.body["metadata"]["labels"][LABEL_RUN]


def _key(ref: Ref) -> Key:
    resource = RESOURCES_OF[ref.kind]
    return Key(resource.group, ref.kind, (ref.namespace or "default") if resource.namespaced else "", ref.name)


def _identity(item: Mapping[str, Any]) -> Object:
    """What makes two objects of one name the same: all but the status, and the server's own metadata."""
    meta = item.get("metadata", {})
    kept = {part: meta[part] for part in ("labels", "annotations", "ownerReferences") if part in meta}
    return {"metadata": kept, **{key: value for key, value in item.items() if key in {"spec", "data"}}}


def _holds(stored: Any, wanted: Any) -> bool:
    """Whether an object says all that is wanted, and nothing where None is: what a server adds does not matter."""
    if isinstance(wanted, Mapping):
        if not isinstance(stored, Mapping):
            return all(value is None for value in wanted.values())
        return all(_holds(stored.get(key), value) for key, value in wanted.items())
    if isinstance(wanted, list | tuple) and isinstance(stored, list):
        return len(stored) >= len(wanted) and all(map(_holds, stored, wanted))
    return bool(stored == wanted) or (stored is None and not wanted and wanted is not False)
