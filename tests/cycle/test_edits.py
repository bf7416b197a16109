"""Whatever is edited in Budgets and Policy: the next cycles plan, every invariant holds, nothing happens twice (§9)."""

from pathlib import Path

import pytest
from hypothesis import given

from tests.cycle import edits, hands
from tests.cycle.played import NOTHING, cycle
from tests.support import documents as doc
from tests.support import invariants
from tests.support.documents import Document
from tests.support.effort import examples
from tests.support.times import unix

AT = unix("2026-01-01T00:10:00Z")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the cluster lies."""
    return tmp_path_factory.mktemp("edits") / "cluster.json"


@examples(30)
@given(case=edits.edited())
def test_an_edit_stops_no_cycle(path: Path, case: hands.Case) -> None:
    path.write_text(doc.as_json(case.documents), encoding="utf-8")

    first = cycle(path, AT)
    assert first.violations == []
    after = doc.read(path)
    invariants.check(case.documents, after, AT)
    left = first.work if _observes(after) else NOTHING  # what only is published is there to be done
    assert cycle(path, AT, write=False).work == left

    later = cycle(path, AT + 60)
    assert later.violations == []
    if _observes(after):
        assert _but_plans(doc.read(path)) == _but_plans(after) == _but_plans(case.documents)
    else:
        assert later.work == NOTHING
    invariants.check(after, doc.read(path), AT + 60)


def _observes(documents: list[Document]) -> bool:
    return any(each["kind"] == "Policy" and each["spec"].get("mode") == "observe" for each in documents)


def _but_plans(documents: list[Document]) -> list[Document]:
    return [each for each in documents if each["kind"] != "Plan"]
