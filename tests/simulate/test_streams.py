"""Streams as people name them."""

from pathlib import Path

from tests.support.commands import jobtree


def test_a_stream_that_is_not_there_is_said_to_be_none(tmp_path: Path) -> None:
    missing = tmp_path / "nodir"
    assert jobtree("simulate", missing).refused() == f"error: {missing}: there is no such stream"
