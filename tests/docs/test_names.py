"""Names of the model's columns and rows: the code's, those that model files have, and those on the planner's page."""

import re
from typing import Final

from exporters.plans.modelnames import PARTS
from tests.docs import pages

PAGE: Final = (pages.ROOT / "docs" / "planner.md").read_text(encoding="utf-8")
MASTER: Final = PAGE[PAGE.index("**Master**") : PAGE.index("**Stages**")]


def named(text: str) -> set[str]:
    """What is set as code there: `start[run]` is the name start."""
    return set(re.findall(r"`([a-z-]+)(?:\[[^`]*\])?`", text))


def made(what: str) -> set[str]:
    """Names that the rule families give to a model's columns, or to its rows."""
    sources = (path.read_text(encoding="utf-8") for path in sorted((pages.ROOT / "policies").rglob("*.py")))
    return {name for text in sources for name in re.findall(rf'\.{what}\(\s*\("([a-z-]+)"', text)}


def cells(heading: str) -> set[str]:
    """Names in the first column of the table that begins so."""
    table = MASTER[MASTER.index(f"| {heading} |") :].partition("\n\n")[0]
    return named(" ".join(line.split("|")[1] for line in table.splitlines()[2:]))


def test_every_column_and_row_is_on_the_page() -> None:
    assert PARTS.keys() - named(MASTER) == set()


def test_tables_name_all_but_what_the_text_below_them_explains() -> None:
    small = {"seat", "seats", "chunks", "node"}
    assert made("column") ^ cells("columns") == small - {"seats", "node"}
    assert made("row") ^ cells("rows") == (small - {"seat"}) | {"lie"}  # that key is made before it is used


def test_every_column_and_row_has_a_name_in_model_files() -> None:
    assert (made("column") | made("row")) - PARTS.keys() == set()
