"""What is written for good, and what only outlasts a kill."""

import os
from pathlib import Path

import pytest

from exporters.lake.lake import Lake


@pytest.mark.parametrize(("lasting", "synced"), [(True, 2), (False, 0)])
def test_a_lake_waits_for_the_disk_where_it_is_to_last(
    lasting: bool, synced: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = list[int]()
    monkeypatch.setattr(os, "fsync", files.append)
    lake = Lake(tmp_path / "lake", lasting=lasting)

    lake.put(tmp_path / "lake" / "a", b"1")

    assert ((tmp_path / "lake" / "a").read_bytes(), len(files)) == (b"1", synced)
