"""The rules of an edit: what may change once an object is there (spec §1)."""

from __future__ import annotations

from typing import Any

import msgspec

from jobtree.api.kinds.budget import Budget
from jobtree.api.kinds.lease import Lease
from jobtree.api.kinds.plan import Plan
from jobtree.api.kinds.reservation import Reservation
from jobtree.api.kinds.run import Run, RunSpec
from jobtree.api.rules.decode import KindObject
from jobtree.api.values.errors import Refusal, missing, show, wrong
from jobtree.api.values.scalars import enc_hook

_RUN_MAY = "state, malleable.desiredTotalGPUs and funding.sponsors"


def check_update(old: KindObject, new: KindObject) -> None:
    """Checks an edit of one object, `old` to `new`. Raises Refusal."""
    try:
        match old, new:
            case Run(), Run():
                _check_run(old.spec, new.spec)
            case Budget(), Budget():
                _same(old.spec.owner, new.spec.owner, "spec.owner", "the owner of a Budget never changes")
            case Lease(), Lease():
                _check_lease(old, new)
            case (Reservation(), Reservation()) | (Plan(), Plan()):
                _same(old.spec, new.spec, "spec", f"the spec of a {new.kind} never changes")
            case _:
                pass
    except Refusal as refusal:
        raise refusal.about(new.subject) from None


def _check_run(old: RunSpec, new: RunSpec) -> None:
    if old.state == "Cancelled" and new.state != "Cancelled":
        raise wrong("spec.state", new.state, "Cancelled, which is final")
    _same(_fixed(old), _fixed(new), "spec", f"after creation only {_RUN_MAY} may change")


def _fixed(spec: RunSpec) -> RunSpec:
    """The spec with all that may change, and the two spellings of `spares`, made equal."""
    replace = msgspec.structs.replace
    malleable = replace(spec.malleable, desired_total_gpus=None) if spec.malleable else None
    return replace(
        spec,
        state="Active",
        malleable=malleable,
        funding=replace(spec.funding, sponsors=()),
        spares_given=spec.spares,
        spares_per_group=None,
    )


def _check_lease(old: Lease, new: Lease) -> None:
    _same(old.spec, new.spec, "spec", "the spec of a Lease never changes")
    if old.status.closed:
        _same(old.status, new.status, "status", "a closed Lease is final")
    before, after = old.status.funding, new.status.funding
    for index, segment in enumerate(before):
        where = f"status.funding[{index}]"
        if index >= len(after):
            raise missing(where, "what it was: segments are only ever appended")
        written = after[index]
        if segment.to is None:  # the open segment may be given its end
            written = msgspec.structs.replace(written, to=None)
        _same(segment, written, where, "segments are never rewritten")


def _same(old: object, new: object, field: str, rule: str) -> None:
    if old == new:
        return
    path, before, after = _difference(_plain(old), _plain(new), field)
    given, allowed = ("nothing" if value is None else show(value) for value in (after, before))
    raise Refusal(f"{path} changed from {allowed} to {given}; {rule}", field=path, given=given, allowed=allowed)


def _plain(value: object) -> Any:
    return msgspec.to_builtins(value, enc_hook=enc_hook)


def _difference(old: Any, new: Any, path: str) -> tuple[str, Any, Any]:
    """The first place where two plain values differ, in the order of the fields."""
    if isinstance(old, dict) or isinstance(new, dict):
        old, new = old or {}, new or {}
        for key in [*old, *(key for key in new if key not in old)]:
            if old.get(key) != new.get(key):
                return _difference(old.get(key), new.get(key), f"{path}.{key}")
    if isinstance(old, list | tuple) and isinstance(new, list | tuple):
        for index, (before, after) in enumerate(zip(old, new, strict=False)):
            if before != after:
                return _difference(before, after, f"{path}[{index}]")
    return path, old, new
