"""The page of the command lines: every command has its place (its examples are run with those of all pages)."""

import argparse
import re
from collections.abc import Iterator

import pytest

from jobtree.cli import operator
from jobtree.cli import plugin as runs
from jobtree.cli.common import args
from tests.support import console

PAGE = console.ROOT / "docs" / "cli.md"


def test_every_command_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    said = {runs.parser(): "`", operator.parser(): "`jobtree "}
    places = {name: begin for parser, begin in said.items() for name in commands(parser)}
    assert len(places) > 25
    assert [name for name, begin in places.items() if not re.search(rf"{begin}{name}[ `]", text)] == []


@pytest.mark.parametrize("parser", [runs.parser(), operator.parser()], ids=lambda parser: parser.prog)
def test_the_page_and_the_help_name_the_same_variables(parser: argparse.ArgumentParser) -> None:
    rows = dict(
        re.findall(r"^\| `(--[a-z]+)[^|]*\| [^|]*\| ([^|]*) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    )
    state = parser._option_string_actions["--state"].help or ""
    assert [name for name in args.VARIABLES if f"${name}" not in rows["--state"] or f"${name}" not in state] == []


def commands(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Every command in full, those of two words as two."""
    for action in parser._actions:
        for name, below in action.choices.items() if isinstance(action.choices, dict) else ():
            yield from [f"{name} {each}" for each in commands(below)] or [name]
