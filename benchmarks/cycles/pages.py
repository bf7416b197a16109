"""The measured tables of docs/planner.md: stored results in brief, between two marks."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from benchmarks import machine
from benchmarks.cycles import tables

PAGE: Final = Path(__file__).parent.parent.parent / "docs" / "planner.md"
BEGIN: Final = "<!-- measured tables: begin -->\n"
END: Final = "<!-- measured tables: end -->\n"
SHOWN: Final = {
    "fresh": "`make bench ARGS=--fresh`: fleets whose seeds come from the measured commit, so that nobody can have "
    "looked at them before; all of them",
    "quick": "`make bench`: worlds that are hard in other ways",
}
"""The results that the page shows, in its order, and what each is."""
HEAD: Final = (
    "One `jobtree cycle` each, from the state file to the written plan, beside what simple orders leave to the same "
    "bound. Phases, stages, memory, and what each part of the search loses, are in "
    "[benchmarks/results](../benchmarks/results); what the worlds are, in [benchmarks](../benchmarks/README.md)."
)


def rendered(page: str, results: Sequence[tuple[str, tables.Result]]) -> str:
    """The page with the tables of results, each with its sentence."""
    said = [HEAD]
    for sentence, result in results:
        said += [f"{sentence}; {result.date}, on {machine.sentence(result.machine)}.", tables.brief(result)]
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + "\n\n".join(said) + "\n" + END + after


def write(folder: Path) -> None:
    """Write the stored results of a folder into the page; those that are not there are left out."""
    stored = [(sentence, folder / f"{name}.json") for name, sentence in SHOWN.items()]
    results = [
        (sentence, msgspec.json.decode(path.read_bytes(), type=tables.Result))
        for sentence, path in stored
        if path.exists()
    ]
    PAGE.write_text(rendered(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
