"""Whatever is edited in Budgets and Policy: the next cycles plan, every invariant holds, nothing happens twice (§9)."""

from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.cycle import edits, hands
from tests.cycle.played import NOTHING, cycle
from tests.support import documents as doc
from tests.support import invariants
from tests.support.times import unix

AT = unix("2026-01-01T00:10:00Z")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the cluster lies."""
    return tmp_path_factory.mktemp("edits") / "cluster.json"


@settings(max_examples=30)
@given(case=edits.edited())
def test_an_edit_stops_no_cycle(path: Path, case: hands.Case) -> None:
    path.write_text(doc.as_json(case.documents), encoding="utf-8")

    assert cycle(path, AT).violations == []
    after = doc.read(path)
    invariants.check(case.documents, after, AT)
    assert cycle(path, AT, write=False).work == NOTHING

    assert cycle(path, AT + 60).work == NOTHING
    invariants.check(after, doc.read(path), AT + 60)
