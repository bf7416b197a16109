"""Fields on which this version does not act yet (case U17): the reference, the CRDs and `submit` say so."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from msgspec import inspect

from jobtree.api import decode
from jobtree.api.crds import crds, reference
from jobtree.api.kinds.base import LATER
from jobtree.api.rules.decode import KINDS
from jobtree.api.rules.later import note_of, without_effect
from jobtree.api.values.allowed import bare, type_of
from tests.support import documents as doc
from tests.support.times import T0
from tests.support.worlds import World

NOTES = (str((LATER.extra or {})["later"]),)
#: A value of each marked field of a spec that is not its default.
GIVEN: dict[str, dict[str, Any]] = {
    "Budget": {
        "spec.envelopes[].preActivation.allowReservations": {
            "envelopes": [doc.envelope(8), doc.envelope(8, "late", preActivation={"allowReservations": False})]
        },
    },
}
PLAIN = {
    "Run": doc.run("r", 8),
    "Budget": doc.budget("org:a", [doc.envelope(8)]),
    "Policy": doc.policy(),
}
CASES = [(kind, path, spec) for kind, given in GIVEN.items() for path, spec in given.items()]


def marked(kind: inspect.Type, path: str = "") -> Iterator[tuple[str, str]]:
    """(path, note) of each field at or below a type that has one."""
    if note := note_of(kind):
        yield path, note
    found = bare(kind)
    if isinstance(found, inspect.VarTupleType):
        yield from marked(found.item_type, f"{path}[]")
    elif isinstance(found, inspect.StructType):
        for field in found.fields:
            yield from marked(field.type, f"{path}.{field.encode_name}".lstrip("."))


def marks(kind: str) -> list[tuple[str, str]]:
    return list(marked(type_of(KINDS[kind])))


def test_u17_every_marked_field_of_a_spec_has_a_case_here() -> None:
    found = {kind: {path for path, note in marks(kind) if note == NOTES[0]} for kind in KINDS}
    assert {kind: paths for kind, paths in found.items() if paths} == {
        kind: set(paths) for kind, paths in GIVEN.items()
    }


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_u17_the_reference_and_the_crd_say_so_of_each(kind: str) -> None:
    page = reference.generate().partition(f"\n## {kind}\n")[2].partition("\n## ")[0]
    told = yaml.safe_dump(yaml.safe_load(crds.generate()[f"{crds.RESOURCES[kind].plural}.yaml"]), width=10_000)
    notes = [note for _, note in marks(kind)]
    for note in NOTES:
        assert (page.count(f"**{note}**"), told.count(note)) == (notes.count(note), notes.count(note))


@pytest.mark.parametrize(("kind", "path", "spec"), CASES)
def test_u17_submit_warns_of_what_is_given(kind: str, path: str, spec: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "m.yaml"
    file.write_text(doc.dump([doc.merge(PLAIN[kind], {"spec": spec})]))
    output = World().node("n").budget("org:a", 8).runs("submit", "-f", file, "-o", "json", at=T0).ok()
    (warning,) = output.err.splitlines()
    subject, _, fields = warning.removeprefix("warning: ").partition(": without effect in this version yet: ")
    assert subject.split()[0] == kind
    assert path.replace("[]", "[1]") in fields.split(", ")


def test_u17_what_is_not_given_or_is_the_default_needs_no_word() -> None:
    default = {
        "reservations": {"notice": "15m", "horizon": "1d"},
        "podDefaults": {"cpu": "1"},
    }
    documents = [*PLAIN.values(), doc.policy(**default)]
    documents.append(doc.budget("org:a", [doc.envelope(8, preActivation={"allowReservations": True})]))
    items = [decode(str(document["kind"]), msgspec.json.encode(document)) for document in documents]
    assert [without_effect(item) for item in items] == [[]] * len(items)  # type: ignore[arg-type]
