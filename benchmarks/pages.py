"""The measured tables of docs/planner.md: a stored result between two marks."""

from pathlib import Path
from typing import Final

import msgspec

from benchmarks import machine, tables

PAGE: Final = Path(__file__).parent.parent / "docs" / "planner.md"
BEGIN: Final = "<!-- measured tables: begin -->\n"
END: Final = "<!-- measured tables: end -->\n"


def rendered(page: str, stored: Path) -> str:
    """The page with the tables of a stored result."""
    result = msgspec.json.decode(stored.read_bytes(), type=tables.Result)
    head = f"`make bench ARGS=--all`, {result.date}, on {machine.sentence(result.machine)}. "
    head += "[benchmarks](../benchmarks/README.md) says what the worlds are."
    said = [head, *tables.sections(result, "###")]
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n\n".join(said) + "\n" + END + after


def write(stored: Path) -> None:
    """Write them into the page."""
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8"), stored), encoding="utf-8")
