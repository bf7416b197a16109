"""The glossary, and the least objects that pages print."""

import re
from pathlib import Path

import pytest
import yaml

from tests.docs.pages import ROOT
from tests.examples.consoles import PAGES

GLOSSARY = (ROOT / "docs/glossary.md").read_text(encoding="utf-8")
TERMS = re.findall(r"^### (.*)$", GLOSSARY, re.MULTILINE)
ANCHORS = {term.lower().replace(" ", "-") for term in TERMS}


def linked(page: str) -> list[str]:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.findall(r"\]\([^)]*glossary\.md#([^)]*)\)", text)


def test_terms_are_in_order_and_each_is_once() -> None:
    assert list(dict.fromkeys(sorted(TERMS, key=str.lower))) == TERMS


def test_each_leads_to_a_page_that_is_there() -> None:
    targets = re.findall(r"\[More\]\(([^)#]*)", GLOSSARY)
    assert len(targets) == len(TERMS)
    assert [target for target in targets if not (ROOT / "docs" / target).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_to_it_lead_to_terms_each_linked_once_a_page(page: str) -> None:
    found = linked(page)
    assert set(found) - ANCHORS == set()
    assert len(found) == len(set(found))


@pytest.mark.parametrize("page", ["README.md", "docs/getting-started.md", "docs/cli.md", "docs/finance.md"])
def test_guides_link_the_words_that_a_newcomer_cannot_know(page: str) -> None:
    assert len(linked(page)) >= 4


@pytest.mark.parametrize("page", ["docs/own-fleet.md", "docs/nodes.md"])
def test_the_least_objects_on_the_pages_are_the_examples(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    printed = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)]
    there = [each for path in sorted((ROOT / "examples/own").iterdir()) for each in _objects(path)]
    assert [each for each in printed if each not in there] == []
    assert printed


def _objects(path: Path) -> list[object]:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    return list(found["items"]) if found["kind"] == "List" else [found]
