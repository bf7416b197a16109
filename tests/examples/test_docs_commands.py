"""Every command, query and snippet in the guides works and prints what the page says."""

import contextlib
import io
import re

import pytest

from tests.examples import consoles


@pytest.mark.parametrize("page", consoles.PAGES)
def test_pages_say_what_the_commands_print(page: str) -> None:
    names: dict[str, object] = {}
    wrong = []
    with consoles.workplace():
        for language, text in consoles.blocks(page):
            if language != "console":
                with contextlib.redirect_stdout(io.StringIO()):
                    consoles.execute(language, text, names)
                continue
            for step in consoles.steps(text):
                real = consoles.run(step.command)
                if not consoles.agrees(step.printed, real):
                    wrong.append(f"$ {step.command}\n{real}--- {page} says:\n{step.printed}")

    assert wrong == [], "\n".join([*wrong, "`python -m tests.examples.consoles` writes what is real into the pages"])


def test_targets_named_in_the_pages_exist() -> None:
    makefile = (consoles.ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
    named = {
        target
        for page in consoles.PAGES
        for target in re.findall(
            r"(?:^|`)make ([a-z]+)", (consoles.ROOT / page).read_text(encoding="utf-8"), re.MULTILINE
        )
    }

    assert {"demo", "test"} <= named <= targets


def test_dots_stand_for_any_lines() -> None:
    assert consoles.agrees("a\n...\nd\n", "a\nb\nc\nd\n")
    assert consoles.agrees("...\n", "")
    assert not consoles.agrees("a\n...\n", "b\na\n")
    assert not consoles.agrees("a.c\n", "abc\n")


def test_links_between_the_pages_lead_somewhere() -> None:
    dead = [
        f"{page}: {target}"
        for page in (*consoles.PAGES, "examples/README.md")
        for target in re.findall(r"\]\(([^)#:]+)[)#]", (consoles.ROOT / page).read_text(encoding="utf-8"))
        if not (consoles.ROOT / page).parent.joinpath(target).exists()
    ]

    assert dead == []
