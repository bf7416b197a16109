"""Single fields of a Lease's spec that a hand made unreadable, and what else in it still says (spec §1 Lease, §2).

    reason       nothing depends on it: Start
    runUid       none: it is of the Run of that name
    slice.nodeUid  none: it is on the node of that name
    group        as in its name, where a cycle named it
    slice.role   as written, but for case
    interval     when the cycle that opened it was

So such a lease goes on and is charged on as before. Of any other field nothing is known.
"""

import re
from collections.abc import Callable
from typing import Any, Final, get_args

from jobtree.api import Time
from jobtree.api.kinds.lease import Role
from jobtree.world.memory.cycles import moment_of

_NAME: Final = re.compile(r".+-\d{8}t\d{6}z(?:-\d+)?-g(?P<group>\d{1,6})-\d+", re.ASCII)


def restored(document: Any, problem: str) -> tuple[Any, str] | None:
    """The document with the field that a refusal's ``problem`` names as it must have been, and words on that.

    None where nothing tells.
    """
    spec = document.get("spec") if isinstance(document, dict) else None
    way = next((each for each in _WAYS if problem.startswith((f"spec.{each} ", f"spec.{each}."))), "")
    if not way or not isinstance(spec, dict):
        return None
    value = _WAYS[way](document, spec)
    if value is None:
        return None
    field, _, part = way.partition(".")
    whole = {**spec[field], part: value} if part else value
    told = value["start"] if isinstance(value, dict) else value
    return {**document, "spec": {**spec, field: whole}}, f"it is read as {told}" if told != "" else "it is passed over"


def _group(document: Any, _: dict[str, Any]) -> int | None:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    told = _NAME.fullmatch(name) if isinstance(name, str) else None
    return int(told["group"]) if told else None


def _role(_: Any, spec: dict[str, Any]) -> str | None:
    part = spec.get("slice")
    said = part.get("role") if isinstance(part, dict) else None
    return next((role for role in get_args(Role) if isinstance(said, str) and said.casefold() == role.casefold()), None)


def _interval(_: Any, spec: dict[str, Any]) -> dict[str, str] | None:
    cycle = spec.get("cycle")
    told = moment_of(cycle) if isinstance(cycle, str) else None
    return {"start": str(Time(told.at))} if told else None


_WAYS: Final[dict[str, Callable[[Any, dict[str, Any]], Any]]] = {
    "reason": lambda *_: "Start",
    "runUid": lambda *_: "",
    "slice.nodeUid": lambda *_: "",
    "group": _group,
    "slice.role": _role,
    "interval": _interval,
}
