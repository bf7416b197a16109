"""Console sessions of the docs, run again: each ``$ command`` must print what stands below it.

A line ``...`` in the page stands for any number of lines. ``python -m tests.support.console PAGE`` rewrites the page
with what the commands print now, where that is something else.
"""

import contextlib
import os
import re
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.support.commands import jobtree, kubectl_runs

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"(?<=```console\n).*?(?=```)", re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


@dataclass(frozen=True)
class Step:
    """A command of a page and the output that stands below it."""

    line: str
    output: str

    def matches(self, printed: str) -> bool:
        """Whether the page's output is what was printed."""
        parts = re.split(r"^\.\.\.\n", self.output, flags=re.MULTILINE)
        return re.fullmatch(".*".join(re.escape(part) for part in parts), printed, re.DOTALL) is not None


def steps(text: str) -> list[Step]:
    """The commands of a page, in its order."""
    return [Step(*found) for block in _BLOCK.findall(text) for found in _COMMAND.findall(block)]


@contextlib.contextmanager
def folder() -> Iterator[None]:
    """A fresh working folder with copies of the examples."""
    with tempfile.TemporaryDirectory() as made, contextlib.chdir(made):
        for example in sorted((ROOT / "examples").glob("*.yaml")):
            shutil.copy(example, made)
        yield


def run(line: str) -> str:
    """What a command prints, stdout and then stderr."""
    words = shlex.split(line)
    if words[:2] == ["kubectl", "runs"]:
        output = kubectl_runs(*words[2:])
    else:
        assert words[0] == "jobtree", f"the pages' sessions know kubectl runs and jobtree, not {line}"
        output = jobtree(*words[1:])
    return output.out + output.err


def rewrite(text: str) -> str:
    """The page with the outputs of now."""

    def block(found: re.Match[str]) -> str:
        return _COMMAND.sub(command, found[0])

    def command(found: re.Match[str]) -> str:
        printed = run(found[1])
        return found[0] if Step(found[1], found[2]).matches(printed) else f"$ {found[1]}\n{printed}"

    with folder():
        return _BLOCK.sub(block, text)


if __name__ == "__main__":
    page = Path(sys.argv[1]).absolute()
    os.chdir(ROOT)
    page.write_text(rewrite(page.read_text(encoding="utf-8")), encoding="utf-8")
