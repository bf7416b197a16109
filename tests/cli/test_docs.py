"""The page of the command lines: every command has its place (its examples are run with those of all pages)."""

from jobtree.cli.completion import candidates
from tests.support import console

PAGE = console.ROOT / "docs" / "cli.md"


def test_every_command_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    commands = [name for name in candidates([""]) if name not in {"budgets", "sponsors"}]
    commands += [f"budgets {name}" for name in candidates(["budgets", ""])]
    commands += [f"sponsors {name}" for name in candidates(["sponsors", ""])]
    operators = ["cycle", "snapshot", "plan", "apply", "replay", "crds", "report", "compact"]
    missing = [name for name in commands if f"`{name}" not in text]
    missing += [name for name in operators if f"`jobtree {name}" not in text]
    assert missing == []
