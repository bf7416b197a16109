"""A small cluster after some cycles, and what a hand may make of a status in it.

The cluster has runs that are funded from their own and from others' envelopes, on loan, unfunded, malleable, with
spares, with a limit, over in every way, waiting, suspended, of CPU and an array; classes have turned.
"""

import copy
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st

from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.drawing import Draw
from tests.support.times import moment
from tests.support.worlds import World

WORDS: Final = (
    "Pending", "Waiting", "Running", "Completed", "Failed", "TimeLimit", "NodeFailure", "Swap", "True", "False",
    "Unknown", "owned", "shared", "borrowed", "unfunded", "Applied", "Planned", "Admitted", "Blocked", "default/none",
    "", "of no kind",
)  # fmt: skip
KINDS: Final = ("Run", "Run", "Lease", "Lease", "Budget", "Plan")
TIMES: Final = tuple(moment(each) for each in ("-300d", "-3h", "-2h", "-90m", "-1h", "-1s", "+0s", "+1m", "+300d"))
NUMBERS: Final = (-1, 0, 1, 3, 8, 0.5, 10**12)
FIELDS: Final[dict[str, dict[str, tuple[Any, ...]]]] = {
    "Run": {
        "phase": WORDS[:5], "started": TIMES, "ended": TIMES, "timeLimit": ("0s", "1h", "30d"),
        "reservation": WORDS[-3:], "deficitGPUs": NUMBERS, "earliestStart": TIMES,
    },
    "Lease": {"closed": (True, False), "ended": TIMES, "closureReason": WORDS[3:8], "funding": ([],)},
    "Budget": {"updated": TIMES, "envelopes": ([],), "conditions": ([],)},
    "Plan": {"phase": WORDS, "truncated": (True, False), "stages": ([],)},
}  # fmt: skip
"""Fields that a hand may add, with what it may say there."""


@cache
def cluster() -> tuple[Document, ...]:
    """The objects as the last cycle, at T0, left them."""
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder) / "cluster.yaml")
        world.policy(creditRates={doc.FLAVOR: 0.5}).domain("A", nodes=2).domain("B", nodes=2, gpus=4)
        world.budget("org", 40, scope="subtree", maxGPUHours=4000).budget("org:a", 8, maxCredits=900)
        world.budget("org:b", 6).budget("lab", 4, lending={"allow": True, "maxDuration": "90m"}, maxGPUHours=300)
        world.run("own", 2, limit="30d").run("wide", 1, by=1, malleable=_widths(1, 2), spares=1)
        world.run("timed", 1, limit="1h").run("done", 1).run("stopped", 1).run("near", 2, owner="org:b")
        world.run("guest", 2, owner="club", funding={"allowBorrow": True, "sponsors": ["lab"]})
        world.run("free", 2, owner="club", funding={"opportunistic": True}).run("list", 1, array={"count": 2})
        world.run("after", 1, follow={"after": ["done"]}).run("never", 1, follow={"after": ["timed"]})
        world.run("idle", 1, state="Suspended").run("small", 1, spec={"resources": _cpu()})
        world.run("far", 3, owner="org:a")
        world.cycle("-3h")
        world.runs("complete", "done", at="-150m").ok()
        world.edit("Run", "stopped", spec={"state": "Cancelled"})
        world.edit("Budget", "org-b", spec={"envelopes": [doc.envelope(1)]})
        world.cycle("-2h")
        world.run("late", 1, owner="org:b")
        world.edit("Budget", "org-b", spec={"envelopes": [doc.envelope(6)]})
        world.cycle("-1h")
        return tuple(world.cycle().documents)


def _widths(least: int, most: int) -> Document:
    return {"minTotalGPUs": least, "maxTotalGPUs": most, "stepGPUs": 1}


def _cpu() -> Document:
    return {"gpuType": None, "totalGPUs": None, "pods": 2, "cpuPerPod": "1", "memoryPerPod": "1Gi"}


class Case:
    """The cluster with one or two fields of statuses changed, and which."""

    def __init__(self, documents: list[Document], changed: list[str]) -> None:
        self.documents = documents
        self.changed = changed

    def __repr__(self) -> str:
        return f"Case({self.changed})"


def edited(draw: Draw, most: int, edit: Callable[[Draw, list[Document]], str]) -> Case:
    """The cluster after up to ``most`` edits."""
    documents = copy.deepcopy(list(cluster()))
    return Case(documents, [edit(draw, documents) for _ in range(draw(st.integers(1, most)))])


@st.composite
def mutilated(draw: Draw, kinds: tuple[str, ...] = KINDS, most: int = 2) -> Case:
    """The cluster after a hand changed one field, or up to ``most``, of objects of these kinds."""
    return edited(draw, most, lambda draw, documents: _change(draw, documents, draw(st.sampled_from(kinds))))


def _change(draw: Draw, documents: list[Document], kind: str) -> str:
    each = draw(st.sampled_from([each for each in documents if each["kind"] == kind and each.get("status")]))
    status, name = each["status"], f"{kind} {each['metadata']['name']}"
    if draw(st.booleans()):
        added = draw(st.sampled_from(sorted(FIELDS[kind])))
        status[added] = draw(st.sampled_from(FIELDS[kind][added]))
        return f"{name}.{added} = {status[added]}"
    holder, key, path = draw(st.sampled_from(list(_places(status))))
    return f"{name}{path} {_edited(draw, holder, key)}"


def _places(value: Any, path: str = "") -> Iterator[tuple[Any, Any, str]]:
    """Every entry of nested mappings and lists, as (container, key, path)."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield value, key, f"{path}.{key}"
        yield from _places(inner, f"{path}.{key}")


def _edited(draw: Draw, holder: Any, key: Any) -> str:
    """Takes the entry out, doubles it, or says something else there."""
    old = holder[key]
    way: str = draw(st.sampled_from(["out", "double", "other", "other"]))
    if way == "out":
        del holder[key]
    elif way == "double" and isinstance(holder, list):
        holder.insert(0, copy.deepcopy(old))
    elif isinstance(old, bool):
        holder[key] = not old
    elif isinstance(old, list):
        holder[key] = old[::-1]
    else:
        kinds = {str: TIMES if _is_time(old) else WORDS, int: NUMBERS, float: NUMBERS}
        holder[key] = draw(st.sampled_from(kinds.get(type(old), WORDS)))
        return f"= {holder[key]}"
    return way


def _is_time(text: Any) -> bool:
    return isinstance(text, str) and text[4:5] == "-" and text.endswith("Z")


def set_one(draw: Draw, holder: Document, fields: dict[str, tuple[Any, ...]]) -> str:
    """Says something else in one of these ``fields``, or with None takes it out."""
    field = draw(st.sampled_from(sorted(fields)))
    value = draw(st.sampled_from(fields[field]))
    if value is None:
        holder.pop(field, None)
    else:
        holder[field] = copy.deepcopy(value)
    return f"{field} = {value}"
