"""The policy author's guide shows files as they are, and names only what is there."""

import re
from typing import Final

from tests.docs.pages import ROOT

GUIDE: Final = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")


def test_the_family_that_it_shows_is_the_file() -> None:
    (shown,) = re.findall(r"^```python\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    assert shown == (ROOT / "policies/caps/aggregates.py").read_text(encoding="utf-8")


def test_every_file_that_it_names_is_there() -> None:
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_]+)+(?:\.py)?)`", GUIDE)) - {"deploy/crds"}
    assert {name for name in named if not (ROOT / name).exists()} == set()


def test_families_that_show_a_kind_are_where_it_says() -> None:
    rows = re.findall(r"^\| [^|]+ \| [^|]+ \| `([a-z/]+)` \| `([a-z_/.]+)` \| ([^|]+) \|$", GUIDE, re.MULTILINE)
    assert len(rows) == 5
    for folder, listed, shown in rows:
        assert [name for name in re.findall(r"`([a-z_.]+)`", shown) if not (ROOT / folder / name).exists()] == []
        assert (ROOT / listed).exists()
