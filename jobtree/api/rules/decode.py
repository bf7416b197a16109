"""Reading and printing objects: what msgspec refuses becomes one sentence that names field, given and allowed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

from jobtree.api.kinds.base import API_VERSION
from jobtree.api.kinds.budget import Budget
from jobtree.api.kinds.core import Node, Pod
from jobtree.api.kinds.lease import Lease
from jobtree.api.kinds.meta import name_of
from jobtree.api.kinds.plan import Plan
from jobtree.api.kinds.policy import Policy
from jobtree.api.kinds.reservation import Reservation
from jobtree.api.kinds.run import Run
from jobtree.api.values import allowed
from jobtree.api.values.counted import named
from jobtree.api.values.errors import Refusal, Unreadable, missing, wrong
from jobtree.api.values.nearest import nearest
from jobtree.api.values.scalars import dec_hook, enc_hook

#: The kinds of the group.
KindObject = Budget | Run | Reservation | Lease | Plan | Policy
#: The kinds of the group by name.
KINDS: Final[dict[str, type[KindObject]]] = {
    "Budget": Budget,
    "Run": Run,
    "Reservation": Reservation,
    "Lease": Lease,
    "Plan": Plan,
    "Policy": Policy,
}
#: Everything that `decode` reads, by name.
READABLE: Final[dict[str, type[KindObject | Node | Pod]]] = {**KINDS, "Node": Node, "Pod": Pod}

_MESSAGE: Final = re.compile(r"(?P<what>.*?)(?: - at (?P<key>`key` in )?`\$(?P<path>.*)`)?", re.DOTALL)
_UNKNOWN: Final = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_MISSING: Final = re.compile(r"Object missing required field `(.*)`")
_PART: Final = re.compile(r"\.([^.\[]+)|\[(\d+|\.\.\.)\]")


def decode(kind: str, raw: bytes | msgspec.Raw | Mapping[str, Any]) -> KindObject | Node | Pod:
    """One object of a kind, from JSON bytes or from a mapping as YAML gives it.

    Shapes and types only; `rules.check_object` has the rules between fields. Raises Refusal.
    """
    try:
        if isinstance(raw, bytes | msgspec.Raw):
            return _decoder(kind).decode(raw)
        return msgspec.convert(raw, READABLE[kind], dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        raise explain(kind, _document(kind, raw) if isinstance(raw, bytes | msgspec.Raw) else raw, error) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise _unreadable(kind, error) from None


def is_status(kind: str, raw: bytes) -> bool:
    """Whether JSON has the shape of that kind's status; what is wrong, `decode` of the whole object says."""
    try:
        _status_decoder(kind).decode(raw)
    except msgspec.DecodeError:
        return False
    return True


@cache  # made when asked for: making all of them takes as long as many a command
def _decoder(kind: str) -> msgspec.json.Decoder[KindObject | Node | Pod]:
    return msgspec.json.Decoder(READABLE[kind], dec_hook=dec_hook)


@cache
def _status_decoder(kind: str) -> msgspec.json.Decoder[Any]:
    status = next(field.type for field in msgspec.structs.fields(KINDS[kind]) if field.name == "status")
    return msgspec.json.Decoder(status, dec_hook=dec_hook)


def _document(kind: str, raw: bytes | msgspec.Raw) -> object:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise _unreadable(kind, error) from None


def _unreadable(kind: str, error: Exception) -> Refusal:
    if isinstance(error, RecursionError):
        return Refusal(f"{kind}: the document is nested too deeply to be read")
    return Refusal(f"{kind}: the document is not JSON: {error}")


def encode(item: KindObject) -> dict[str, Any]:
    """The object as plain values, `apiVersion` and `kind` first, defaults left out."""
    fields: dict[str, Any] = msgspec.json.decode(
        msgspec.json.encode(item, enc_hook=enc_hook)
    )  # so that tuples are lists
    return {"apiVersion": API_VERSION, "kind": item.kind, **fields}


def subject_of(kind: str, raw: object) -> str:
    """How sentences name a document that may be broken: `Run default/train-32`, or just `Run`."""
    metadata = raw.get("metadata") if isinstance(raw, Mapping) else None
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(name, str) or not name:
        return kind
    namespaced = kind == "Pod" or (kind in KINDS and KINDS[kind].NAMESPACED)
    return name_of(kind, str(metadata.get("namespace") or "default") if namespaced else "", name)


def explain(kind: str, raw: object, error: msgspec.ValidationError) -> Refusal:
    """The sentence for what msgspec refused in `raw`."""
    match = _MESSAGE.fullmatch(str(error))
    what, path = (match["what"], match["path"] or "") if match else (str(error), "")
    parts = _resolve(kind, raw, path)
    subject = subject_of(kind, raw)
    if unknown := _UNKNOWN.fullmatch(what):
        return _at(_unknown_field(kind, parts, unknown[1]).about(subject), (*parts, unknown[1]))
    if absent := _MISSING.fullmatch(what):
        parts = (*parts, absent[1])
        return _at(missing(_dotted(parts), _allowed(kind, parts)).about(subject), parts)
    given = _value(raw, parts)
    if match and match["key"]:
        key = next((key for key in given if not isinstance(key, str)), None)
        permitted = "a text (in quotes)"
        if key is None:
            key = next(key for key in given if not _fits(kind, raw, parts, key))
            permitted = allowed.allowed_key(allowed.type_of(READABLE[kind]), parts)
        return wrong(f"a key of {_dotted(parts) or f'the {kind}'}", key, permitted).about(subject)
    cause = error.__cause__
    permitted = cause.allowed if isinstance(cause, Unreadable) else _allowed(kind, parts)
    if permitted.startswith("a text") and " or " not in permitted and not isinstance(given, str):
        permitted += " (in quotes)"
    return _at(wrong(_dotted(parts) or f"the {kind}", given, permitted).about(subject), parts)


def _at(refusal: Refusal, path: tuple[allowed.PathPart, ...]) -> Refusal:
    refusal.path = path
    return refusal


def _allowed(kind: str, parts: tuple[allowed.PathPart, ...]) -> str:
    found = allowed.at(allowed.type_of(READABLE[kind]), parts)
    return allowed.allowed(found) if found else "nothing"


def _unknown_field(kind: str, parts: tuple[allowed.PathPart, ...], name: str) -> Refusal:
    """Names the nearest valid field: a sibling of like spelling, else the same word elsewhere in the kind."""
    whole = allowed.type_of(READABLE[kind])
    siblings = allowed.fields_of(allowed.at(whole, parts))
    field = _dotted((*parts, name))
    by_case = {sibling.lower(): sibling for sibling in siblings}
    near = nearest(name.lower(), by_case, 0.7)
    elsewhere = [path for path in allowed.paths(whole) if path[-1].lower() == name.lower() and path[0] == "spec"]
    if near:
        hint = f"did you mean {by_case[near]}?"
    elif elsewhere:
        hint = f"did you mean {'.'.join(elsewhere[0])}?"
    else:
        hint = f"allowed are {named(siblings, most=40)}"
    return Refusal(f"{field} is not a field of {kind}; {hint}", field=field, given=name, allowed=", ".join(siblings))


def _resolve(kind: str, raw: object, path: str) -> tuple[allowed.PathPart, ...]:
    """The path as names and indices, with the keys that msgspec prints as `[...]`."""
    parts: tuple[allowed.PathPart, ...] = ()
    for name, index in _PART.findall(path):
        if index == "...":
            parts += (_failing_key(kind, raw, parts, path),)
        else:
            parts += (int(index) if index else name,)
    return parts


def _failing_key(kind: str, raw: object, parts: tuple[allowed.PathPart, ...], path: str) -> str:
    """The entry of a mapping that is at fault: the one that alone gives an error at the same path."""
    for key, entry in _value(raw, parts).items():
        try:
            msgspec.convert(_replaced(raw, parts, {key: entry}), READABLE[kind], dec_hook=dec_hook)
        except msgspec.ValidationError as error:
            if str(error).endswith(f"`${path}`"):
                return str(key)
    raise AssertionError(f"no entry of {_dotted(parts)} is at fault alone")  # msgspec checks each entry by itself


def _fits(kind: str, raw: object, parts: tuple[allowed.PathPart, ...], key: str) -> bool:
    """Whether a mapping with that entry alone is refused for no key of it."""
    try:
        msgspec.convert(_replaced(raw, parts, {key: _value(raw, parts)[key]}), READABLE[kind], dec_hook=dec_hook)
    except msgspec.ValidationError as error:
        return "`key` in" not in str(error)
    return True


def _replaced(raw: Any, parts: tuple[allowed.PathPart, ...], value: object) -> Any:
    if not parts:
        return value
    copy: Any = list(raw) if isinstance(raw, list | tuple) else dict(raw)
    copy[parts[0]] = _replaced(raw[parts[0]], parts[1:], value)
    return copy


def _value(raw: Any, parts: tuple[allowed.PathPart, ...]) -> Any:
    for part in parts:
        raw = raw[part]
    return raw


def _dotted(parts: tuple[allowed.PathPart, ...]) -> str:
    text = ""
    for part in parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")
