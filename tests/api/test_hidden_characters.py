# ruff: noqa: N802 -- test names are case ids
"""Characters that nobody sees: refused where a field has a shape, and shown escaped where text leaves (V6, V8)."""

from __future__ import annotations

import csv
import io
import json
import re
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtree.api import Refusal, decode
from jobtree.api.crds.crds import RESOURCES, definition
from jobtree.api.rules.kinds import check_object
from jobtree.api.values.escaped import escaped, is_plain
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.worlds import World

HIDDEN = st.one_of(
    st.characters(categories=["Cc", "Cf", "Zl", "Zp"]), st.sampled_from("\x1b\r\n\t\u202e\u200b\u2066\ufeff\u2028")
)


def run(**spec: Any) -> Document:
    return doc.merge(doc.run("r", 8), {"spec": spec})


def budget(namespaces: list[str] | None = None, **envelope: Any) -> Document:
    made = doc.budget("org:a", [doc.merge(doc.envelope(8), envelope)], "b")
    return doc.merge(made, {"spec": {"namespaces": namespaces}} if namespaces else {})


def policy(**spec: Any) -> Document:
    return doc.policy(**spec)


def lease(**spec: Any) -> Document:
    said = {
        "owner": "org:a", "runRef": {"name": "r"}, "runUid": "u", "runOwner": "org:a", "flavor": doc.FLAVOR, "group": 0,
        "slice": {"nodes": ["n#0"]}, "interval": {"start": "2026-01-01T00:00:00Z"}, "reason": "Start",
    }  # fmt: skip
    return {"apiVersion": doc.API, "kind": "Lease", "metadata": {"name": "l"}, "spec": doc.merge(said, spec)}


SHAPED: dict[str, Callable[[str], Document]] = {
    "name": lambda text: doc.merge(doc.run("r", 8), {"metadata": {"name": text}}),
    "namespace": lambda text: doc.merge(doc.run("r", 8), {"metadata": {"namespace": text}}),
    "owner": lambda text: run(owner=text),
    "sponsors": lambda text: run(funding={"allowBorrow": True, "sponsors": [text]}),
    "gang": lambda text: run(gang={"name": text, "size": 2}),
    "parent": lambda text: run(parent=text),
    "follow": lambda text: run(follow={"after": [text]}),
    "gpuType": lambda text: run(resources={"gpuType": text}),
    "selector's key": lambda text: run(locality={"selector": {text: "x"}}),
    "selector's value": lambda text: run(locality={"selector": {"x": text}}),
    "envelope": lambda text: budget(name=text),
    "flavor": lambda text: budget(flavor=text),
    "envelope's key": lambda text: budget(selector={text: "x"}),
    "envelope's value": lambda text: budget(selector={"x": text}),
    "lending.to": lambda text: budget(lending={"allow": True, "to": [text]}),
    "namespaces": lambda text: budget([text]),
    "topology": lambda text: policy(topology={"labels": {"rack": text}}),
    "resourceNames": lambda text: policy(resourceNames=[text]),
    "creditRates": lambda text: policy(creditRates={text: 1}),
    "maintenance": lambda text: policy(
        maintenance=[{"selector": {"x": text}, "start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z"}]
    ),
    "runRef": lambda text: lease(runRef={"name": text}),
    "slot": lambda text: lease(slice={"nodes": [f"{text}#0"]}),
    "nodeUid": lambda text: lease(slice={"nodeUid": text}),
    "runUid": lambda text: lease(runUid=text),
    "paidBy": lambda text: lease(paidBy={"budget": text, "envelope": "e"}),
    "payer's envelope": lambda text: lease(paidBy={"budget": "b", "envelope": text}),
}


def judge(document: Document) -> None:
    item = decode(document["kind"], document)
    check_object(item)  # type: ignore[arg-type]  # kinds of the group alone are made here


@pytest.mark.parametrize("field", sorted(SHAPED))
@given(character=HIDDEN, where=st.integers(0, 2))
def test_V6_a_field_with_a_shape_holds_no_hidden_character(field: str, character: str, where: int) -> None:
    good = "ab"
    judge(SHAPED[field](good))
    with pytest.raises(Refusal) as caught:
        judge(SHAPED[field](good[:where] + character + good[where:]))
    assert "allowed" in str(caught.value)


def patterns(schema: Any) -> list[str]:
    """Every pattern of a schema."""
    if isinstance(schema, list):
        return [found for part in schema for found in patterns(part)]
    if not isinstance(schema, dict):
        return []
    own = [schema["pattern"]] if isinstance(schema.get("pattern"), str) else []
    return own + [found for part in schema.values() for found in patterns(part)]


@given(character=HIDDEN)
def test_V6_nor_does_any_pattern_of_the_definitions(character: str) -> None:
    found = {pattern for each in DEFINITIONS for pattern in patterns(each)}
    assert len(found) > 10
    for pattern in found:
        for text in (f"a{character}b", f"ab{character}", f"{character}1", f"1{character}"):
            assert not re.search(pattern.removesuffix("$") + r"\Z" if pattern.endswith("$") else pattern, text)


DEFINITIONS = [definition(kind) for kind in RESOURCES]


@given(st.text())
def test_V6_what_is_shown_holds_no_hidden_character(text: str) -> None:
    shown = escaped(text)

    assert not [each for each in shown if unicodedata.category(each) in {"Cc", "Cf", "Cs", "Zl", "Zp"}]
    assert escaped(shown) == shown
    assert (shown == text) == is_plain(text)


@pytest.mark.parametrize("owner", ["-2+3", "@A1", "+x", "=1", "_a", ".a", ":a", "a:", "a::b"])
def test_V8_an_owner_begins_with_a_letter_or_digit(owner: str) -> None:
    with pytest.raises(Refusal):
        judge(run(owner=owner))
    judge(run(owner="1a:-b+@_."))


NASTY = "x\x1b[31m\r\n\u202ey\u200b"
SHOWN = "x\\u001b[31m\\u000d\\u000a\\u202ey\\u200b"


def test_V6_whatever_leaves_shows_them_escaped(tmp_path: Path) -> None:
    """A node's label, an annotation and a broken object's name go through tables, stderr, pages, pictures and CSV."""
    world = World().node("n", domain=NASTY).budget("org:a", 8).run("r", 4)
    world.add(doc.merge(doc.run("q", 8), {"metadata": {"name": NASTY}}))
    cycle = world.cycle()
    outputs = {
        "cycle": cycle.output.err,
        "fleet": world.runs("fleet", "--domain").ok().out,
        "state": world.runs("state").ok().err,
        "plan": world.runs("plan", "r").ok().out,
    }
    for name in ("table", "csv", "html"):
        report = report_of(world, "utilisation", name)
        outputs[name] = report
    for name, text in outputs.items():
        assert not [each for each in text if unicodedata.category(each) in {"Cf", "Zl", "Zp"}], name
        assert not set(text) & {"\x1b", "\r"}, name
    assert SHOWN in outputs["fleet"]
    assert SHOWN in outputs["cycle"]
    assert json.loads(world.runs("fleet", "--domain", "-o", "json").ok().out)[0]["domain"] == NASTY


def report_of(world: World, name: str, form: str) -> str:
    from tests.support.commands import jobtree

    return jobtree("--state", world.path, "report", name, "--lake", world.lake, "-o", form).ok().out


@given(st.text(max_size=8), st.sampled_from(["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "plain", ""]))
def test_V8_cells_that_a_spreadsheet_would_calculate_are_text(text: str, start: str) -> None:
    from reports.output import _cell

    sink = io.StringIO()
    csv.writer(sink).writerow([_cell(start + text), _cell(-5), _cell(-2.5)])
    (cell, whole, part) = next(csv.reader(io.StringIO(sink.getvalue())))

    assert (whole, part) == ("-5", "-2.5")
    assert not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
    assert cell.removeprefix("'") == escaped(start + text).removeprefix("'")
