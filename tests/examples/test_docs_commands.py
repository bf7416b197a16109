"""Every command, query and snippet in the guides works and prints what the page says."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from tests.examples import consoles
from tests.support import console
from tests.support.console import Step

LONG = ("README.md", "docs/cli.md", "docs/getting-started.md", "docs/planner.md", "docs/reports.md", "docs/simulate.md")
"""Pages whose commands take seconds."""
FOLDER = re.compile(r"^\$ mkdir -p (\S+)", re.MULTILINE)


def text(page: str) -> str:
    return (console.ROOT / page).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.slow if page in LONG else ()) for page in consoles.PAGES]
)
def test_pages_say_what_the_commands_print(page: str) -> None:
    shell = console.Shell()
    with console.clone() as root, contextlib.redirect_stdout(io.StringIO()):
        wrong = [
            f"$ {step.line}\n{real}--- {page} says:\n{step.printed}"
            for step, real in shell.page(text(page))
            if not step.agrees(real)
        ]
        assert Path.cwd() == root, "the next page begins in the clone"
        assert {path.name for path in root.iterdir()} == {"examples", "try"}

    assert wrong == [], "\n".join([*wrong, "`python -m tests.examples.consoles` writes what is real into the pages"])


def test_every_page_with_commands_is_run_in_a_folder_of_its_own() -> None:
    pages = [console.ROOT / "README.md", *sorted((console.ROOT / "docs").rglob("*.md"))]
    with_commands = {str(each.relative_to(console.ROOT)) for each in pages if "```console" in text(str(each))}
    folders = [folder for page in consoles.PAGES for folder in FOLDER.findall(text(page))]

    assert with_commands == set(consoles.PAGES)
    assert folders == list(dict.fromkeys(folders))


def test_targets_named_in_the_pages_exist() -> None:
    makefile = (console.ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    named = {
        target for page in consoles.PAGES for target in re.findall(r"(?:^|`)make ([a-z]+)", text(page), re.MULTILINE)
    }

    assert {"demo", "test"} <= named <= targets


def test_dots_stand_for_any_lines() -> None:
    assert Step("", "a\n...\nd\n").agrees("a\nb\nc\nd\n")
    assert Step("", "...\n").agrees("")
    assert not Step("", "a\n...\n").agrees("b\na\n")
    assert not Step("", "a.c\n").agrees("abc\n")


def test_a_command_that_fails_is_no_command_of_a_page_that_does_not_say_so() -> None:
    with console.clone(), pytest.raises(AssertionError, match=r"error: "):
        console.Shell().run(Step("jobtree --state nowhere.yaml cycle", ""))


def test_links_between_the_pages_lead_somewhere() -> None:
    dead = [
        f"{page}: {target}"
        for page in (*consoles.PAGES, "examples/README.md")
        for target in re.findall(r"\]\(([^)#:]+)[)#]", text(page))
        if not (console.ROOT / page).parent.joinpath(target).exists()
    ]

    assert dead == []
