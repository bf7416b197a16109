"""The rule pages tell the truth: every example is planned by the real cycle, every file and family is there."""

import re
from pathlib import Path

import pytest

from tests.docs import pages

PAGES = sorted(pages.RULES.glob("*.md"))
EXAMPLES = [
    pytest.param(steps, id=f"{page.stem}-{number}")
    for page in PAGES
    for number, steps in enumerate(pages.worlds(page), start=1)
]


@pytest.mark.parametrize("steps", EXAMPLES)
def test_an_example_becomes_what_its_page_says(steps: list[dict[str, object]]) -> None:
    for said, seen in pages.play(steps):
        assert seen == said


def test_every_page_but_the_index_has_an_example() -> None:
    assert [page.name for page in PAGES if not pages.worlds(page)] == ["README.md"]


def test_every_module_of_the_policies_is_on_a_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    files = (path for path in (pages.ROOT / "policies").rglob("*.py") if path.name != "__init__.py")
    modules = sorted(path.relative_to(pages.ROOT).as_posix() for path in files)

    assert [name for name in modules if f"`{name}`" not in text] == []


def test_every_page_is_in_the_index() -> None:
    index = (pages.RULES / "README.md").read_text(encoding="utf-8")

    assert [page.name for page in PAGES if page.name != "README.md" and f"({page.name})" not in index] == []


@pytest.mark.parametrize("page", [*PAGES, pages.ROOT / "docs" / "planner.md"], ids=lambda page: page.name)
def test_links_and_named_files_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)[)#]", text)
    named = re.findall(r"`((?:policies|planner|jobtree|exporters|cronjobs)/[\w/]+\.py)`", text)
    dead = [link for link in links if not (page.parent / link).exists()]
    dead += [name for name in named if not (pages.ROOT / name).exists()]

    assert dead == []
