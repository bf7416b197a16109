"""The commands that the guides print, run as they stand; their output in the guides is what they really say.

In a ``console`` block a line ``$ COMMAND`` is run, and the lines below it are its standard output; a line ``...``
stands for any number of lines. ``sql`` and ``python`` blocks are run too. Blocks of one page share a folder that begins
with a copy of ``examples/``. ``python -m tests.examples.consoles`` writes the real output into the pages.
"""

import contextlib
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb

from tests.support.commands import Output, jobtree, kubectl_runs

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/finance.md", "docs/getting-started.md", "docs/lake.md", "docs/reports.md")
_FENCE = re.compile(r"^```(console|sql|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    """A command of a page, and what the page says that it prints."""

    command: str
    printed: str


def blocks(page: str) -> list[tuple[str, str]]:
    """(language, text) of the blocks that are run, in order."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [(match[1], match[2]) for match in _FENCE.finditer(text)]


def steps(block: str) -> Iterator[Step]:
    """The commands of a console block."""
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        command, _, printed = part.partition("\n")
        yield Step(command, printed)


@contextlib.contextmanager
def workplace() -> Iterator[Path]:
    """A folder with the examples, as the current one."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(ROOT / "examples", Path(folder) / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        with contextlib.chdir(folder):
            yield Path(folder)


def run(command: str) -> str:
    """What a command of ours, or ``cp``, prints on standard output; it must succeed."""
    words = shlex.split(command)
    programs: dict[tuple[str, ...], Callable[..., Output]] = {
        ("kubectl", "runs"): kubectl_runs,
        ("kubectl-runs",): kubectl_runs,
        ("jobtree",): jobtree,
    }
    for name, program in programs.items():
        if tuple(words[: len(name)]) == name:
            output = program(*words[len(name) :])
            assert output.code == 0, f"$ {command}\n{output.err}"
            return output.out
    assert words[0] == "cp", f"a page says `{command}`, which this test cannot run"
    shutil.copy(words[1], words[2])
    return ""


def execute(language: str, text: str, names: dict[str, object]) -> None:
    """Run a block of SQL or Python; ``names`` are the page's Python variables."""
    if language == "sql":
        duckdb.execute(text).fetchall()
    else:
        exec(compile(text, "page", "exec"), names)


def agrees(printed: str, real: str) -> bool:
    """Is the page's text the real one, where ``...`` stands for any lines?"""
    pattern = "".join(
        r"(?:.*\n)*?" if line == "...\n" else re.escape(line) for line in printed.splitlines(keepends=True)
    )
    return re.fullmatch(pattern, real) is not None


def rewrite(page: str) -> None:
    """Put the real output below every command of a page, except where ``...`` already agrees with it."""
    names: dict[str, object] = {}

    def fresh(match: re.Match[str]) -> str:
        if match[1] != "console":
            execute(match[1], match[2], names)
            return match[0]
        text = match[2].partition("$ ")[0]
        for step in steps(match[2]):
            real = run(step.command)
            text += f"$ {step.command}\n{step.printed if agrees(step.printed, real) else real}"
        return f"```console\n{text}```"

    path = ROOT / page
    with workplace():
        path.write_text(_FENCE.sub(fresh, path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    for each in sys.argv[1:] or PAGES:
        rewrite(each)
