"""Leases that are set aside, as far as can be told: whose it may be, and which slots it holds (spec §2).

Nothing may be put on those slots, and a run whose Lease it may be is not started a second time, until it is mended.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec

from jobtree.api import Refusal
from jobtree.api.values.counted import counted, named

_OF_A_CYCLE: Final = re.compile(r"(?P<run>.+)-\d{8}t\d{6}z(?:-\d+)?-g\d+-\d+")
_SLOT: Final = re.compile(r"(?P<node>.+)#(?P<ordinal>\d{1,6})", re.ASCII)
_UNKNOWN: Final = "its slots are not known and count as free"

Slot = tuple[str, int]
"""(node, ordinal)."""


class UnreadLease(NamedTuple):
    """``runs``: names of the Runs of its namespace whose it may be by what it says and by how cycles name leases; where
    there are none, any whose name it begins with. ``slots``: those that can be read, in order, each once.
    """

    namespace: str
    name: str
    runs: tuple[str, ...]
    slots: tuple[Slot, ...]


def of(namespace: str, name: str, raw: bytes | msgspec.Raw) -> UnreadLease | None:
    """Tell what a Lease's JSON says; None where it holds nothing, as it says that it has ended."""
    try:
        document = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        document = {}
    spec, status = _mapping(document, "spec"), _mapping(document, "status")
    if status.get("closed") is True and status.get("ended") is not None:
        return None
    named = _OF_A_CYCLE.fullmatch(name)
    runs = {*_run(_mapping(spec, "runRef")), *([named["run"]] if named else [])}
    return UnreadLease(namespace, name, tuple(sorted(runs)), tuple(sorted({*_slots(_mapping(spec, "slice"))})))


def sentence(refusal: Refusal, found: UnreadLease | None) -> str:
    """Of a Lease that is set aside: what was made of it and what to do."""
    if found is None:
        return f"{refusal.problem}: it has ended, and what it was charged does not count until it is mended"
    nodes = named(sorted({node for node, _ in found.slots}))
    held = f"its {counted(len(found.slots), 'GPU')} on {nodes} count as taken" if nodes else _UNKNOWN
    who = f"Run {named(found.runs, ' or ')}" if found.runs else "a Run whose name it begins with"
    return (
        f"{refusal.problem}: {held}, what it was charged does not count, and {who} is not started again;"
        " mend it, or delete it if nothing runs there"
    )


def _mapping(value: Any, name: str) -> dict[str, Any]:
    part = value.get(name) if isinstance(value, dict) else None
    return part if isinstance(part, dict) else {}


def _run(ref: dict[str, Any]) -> Iterator[str]:
    """As `RunRef.run_name` says it."""
    name, index = ref.get("name"), ref.get("index")
    if isinstance(name, str) and name:
        yield name if index is None else f"{name}-{index}"


def _slots(part: dict[str, Any]) -> Iterator[Slot]:
    nodes = part.get("nodes")
    for text in nodes if isinstance(nodes, list) else []:
        if isinstance(text, str) and (slot := _SLOT.fullmatch(text)):
            yield slot["node"], int(slot["ordinal"])
