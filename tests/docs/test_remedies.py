"""The page of remedies tells the truth: its examples, its kinds, its numbers."""

import re

import pytest

from planner.effort import USUAL
from planner.remedies import record
from tests.docs import pages

PAGE = pages.ROOT / "docs" / "remedies.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("number", range(len(pages.worlds(PAGE))))
def test_an_example_becomes_what_the_page_says(number: int) -> None:
    for said, seen in pages.play(pages.worlds(PAGE)[number]):
        assert seen == said


def test_every_kind_is_in_the_table_in_its_order() -> None:
    assert tuple(re.findall(r"^\| `(\w+)` \|", TEXT, re.MULTILINE)) == record.KINDS


def test_the_page_has_the_limits_of_the_code() -> None:
    text, limits = " ".join(TEXT.split()), USUAL.helping
    said = [
        f"more than {USUAL.exact} runs wait",
        f"up to {limits.wider} times what the run lacks",
        f"more than {limits.seats:,} nodes",
        f"at most {limits.events}",
        f"the {limits.rivals} heaviest of the next {limits.field} runs",
        f"at most {limits.rounds} rounds",
    ]

    assert [words for words in said if words not in text] == []


def test_links_and_named_files_are_there() -> None:
    links = [link for link in re.findall(r"\]\(([^)#:]+)[)#]", TEXT) if not (PAGE.parent / link).exists()]
    named = re.findall(r"`(planner/[\w/]+\.py)`", TEXT)

    assert (links, [name for name in named if not (pages.ROOT / name).exists()]) == ([], [])
