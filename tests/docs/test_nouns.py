"""Numbers and their nouns: what people read says `1 GPU` and `2 GPUs`, by one helper (`jobtree.api.values.counted`)."""

import ast
import re
from pathlib import Path
from typing import Final

import pytest

from jobtree.api.values.counted import counted
from tests.support.console import ROOT

NOUNS: Final = (
    "GPU", "GPU-hour", "credit", "run", "Run", "node", "Node", "lease", "Lease", "group", "pod", "Pod", "domain",
    "envelope", "Budget", "claim", "day", "hour", "minute", "second", "cycle", "owner", "object", "slot", "write",
    "name", "plan", "level", "column", "row", "file", "document", "member", "spare", "step",
)  # fmt: skip
BY_HAND: Final = re.compile(rf" (?:[a-z]+ )?(?:{'|'.join(NOUNS)})s\b")
ROOMS: Final = ("jobtree", "planner", "policies", "exporters", "reports", "cronjobs")
FINE: Final = {
    "MAX_GROUPS", "MAX_NODE_GPUS",  # constants that are many
    "whole",  # the most GPU-hours of a window, as text with commas
    "len(names)",  # more than one or the sentence is not said
    "desired", "width",  # a run that shrinks: what follows belongs to the next word, or it holds two at least
    "' or '.join(given.phase)", "placed.name", "cap.name", "name", "pods",  # no numbers
}  # fmt: skip
"""What stands before a plural and is never 1."""


def _text(part: ast.expr) -> str:
    """A part of an f-string, a unit by its name as ``GPU``."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    said = ast.unparse(part.value) if isinstance(part, ast.FormattedValue) else ""
    return "GPU" if said.rpartition(".")[2] == "unit" else "{}"


def by_hand(source: str) -> list[str]:
    """Expressions of f-strings that a plural follows."""
    found = []
    for each in ast.walk(ast.parse(source)):
        parts = each.values if isinstance(each, ast.JoinedStr) else []
        for place, value in enumerate(parts):
            if isinstance(value, ast.FormattedValue) and BY_HAND.match(
                "".join(map(_text, parts[place + 1 : place + 4]))
            ):
                found.append(ast.unparse(value.value))
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_no_sentence_joins_a_number_and_a_plural_by_hand(room: str) -> None:
    files = sorted(Path(ROOT, room).rglob("*.py"))
    found = {(path.name, each) for path in files for each in by_hand(path.read_text(encoding="utf-8"))}

    assert [where for where in sorted(found) if where[1] not in FINE] == []


def test_a_plural_by_hand_is_found() -> None:
    assert by_hand('f"{a} GPUs are {b} free GPUs, {c} GPU, {d}s, {e} {self.unit}s"') == ["a", "b", "e"]


@pytest.mark.parametrize("noun", NOUNS)
def test_one_is_singular_and_all_else_plural(noun: str) -> None:
    assert [counted(number, noun) for number in (0, 1, "1", 2, "1.5")] == [
        f"0 {noun}s", f"1 {noun}", f"1 {noun}", f"2 {noun}s", f"1.5 {noun}s",
    ]  # fmt: skip
