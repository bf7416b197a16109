"""Commands of the docs, run as they stand in a shell; what the pages say below them is what they print.

In a ``console`` block a line ``$ COMMAND`` is run, and the lines below it are what a terminal shows of it: its standard
output, then its warnings or its error; a line ``...`` stands for any number of lines. Of ``sh`` blocks our own commands
are run, and ``sql`` and ``python`` blocks whole; one that says ``python NAME`` is saved as NAME. A page begins and ends
in the clone's root, with a copy of ``examples/``; what it makes lies in folders of its own. ``python -m
tests.support.console PAGE...`` writes what is printed now into pages.
"""

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import duckdb

from tests.support.commands import Output, jobtree, kubectl_runs

ROOT = Path(__file__).parents[2]
_FENCE = re.compile(r"^```(console|sh|sql|python(?: \S+)?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PROGRAMS: dict[str, Callable[..., Output]] = {
    "kubectl runs": kubectl_runs,
    "kubectl-runs": kubectl_runs,
    "jobtree": jobtree,
}


@dataclass(frozen=True)
class Step:
    """A command of a page, and what the page says that it prints."""

    line: str
    printed: str

    def agrees(self, real: str) -> bool:
        """Is the page's text the real one, where ``...`` stands for any lines?"""
        lines = self.printed.splitlines(keepends=True)
        pattern = "".join(r"(?:.*\n)*?" if line == "...\n" else re.escape(line) for line in lines)
        return re.fullmatch(pattern, real) is not None


@dataclass
class Shell:
    """A terminal in a clone of the project; ``folders``: those that a page made; ``names``: variables of its Python."""

    folders: list[str] = field(default_factory=list)
    names: dict[str, object] = field(default_factory=dict)

    def page(self, text: str) -> Iterator[tuple[Step, str]]:
        """Runs all of a page, and says of each command of its consoles what it really prints."""
        for language, block in _FENCE.findall(text):
            yield from self.block(language, block)

    def block(self, language: str, text: str) -> Iterator[tuple[Step, str]]:
        """The same of one block."""
        if language == "sql":
            duckdb.execute(text).fetchall()
        elif language.startswith("python "):
            Path(language.removeprefix("python ")).write_text(text, encoding="utf-8")
        elif language == "python":
            exec(compile(text, "page", "exec"), self.names)
        elif language == "sh":
            for line in text.splitlines():
                if any(line.startswith(f"{name} ") for name in _PROGRAMS):
                    self.run(Step(line, ""))
        else:
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                step = Step(*part.split("\n", 1))
                yield step, self.run(step)

    def run(self, step: Step) -> str:
        """What a line of commands prints; only where the page says so with an error."""
        printed = ""
        for command in step.line.split(" && "):
            output = self._run(shlex.split(command, comments=True))
            printed += output.out + output.err
            assert output.code == 0 or "error: " in step.printed, f"$ {step.line}\n{printed}"
        return printed

    def _run(self, words: list[str]) -> Output:
        if words[-2:-1] == [">"]:
            output = self._run(words[:-2])
            Path(words[-1]).write_text(output.out, encoding="utf-8")
            return Output(output.code, "", output.err)
        for name, program in _PROGRAMS.items():
            given = name.split()
            if words[: len(given)] == given:
                return program(*words[len(given) :])
        match words:
            case ["python", *given]:
                done = subprocess.run([sys.executable, *given], capture_output=True, text=True, check=False)
                return Output(done.returncode, done.stdout, done.stderr)
            case ["cd", folder]:
                os.chdir(folder)
            case ["mkdir", "-p", folder]:
                Path(folder).mkdir(parents=True)  # a folder that is there already is another page's
                self.folders.append(folder)
            case ["cp", *patterns, target]:
                for pattern in patterns:
                    for path in sorted(Path().glob(pattern)):
                        shutil.copy(path, target)
            case _:
                raise AssertionError(f"a page says `{shlex.join(words)}`, which this test cannot run")
        return Output(0, "", "")


@contextlib.contextmanager
def clone() -> Iterator[Path]:
    """A folder with the examples, as the current one."""
    with tempfile.TemporaryDirectory() as made:
        root = Path(made).resolve()
        shutil.copytree(ROOT / "examples", root / "examples", ignore=shutil.ignore_patterns("__pycache__"))
        with contextlib.chdir(root):
            yield root


def rewritten(text: str) -> str:
    """The page with what is printed now, except where ``...`` already agrees with it."""
    shell = Shell()

    def fresh(found: re.Match[str]) -> str:
        steps = list(shell.block(found[1], found[2]))
        if found[1] != "console":
            return found[0]
        said = (f"$ {step.line}\n{step.printed if step.agrees(real) else real}" for step, real in steps)
        return f"```console\n{''.join(said)}```"

    with clone():
        return _FENCE.sub(fresh, text)


def rewrite(*pages: str) -> None:
    """Writes pages, given from the project's root, anew."""
    for page in pages:
        path = ROOT / page
        path.write_text(rewritten(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    rewrite(*sys.argv[1:])
