"""What `make` says on a machine that cannot run Jobtree, and what it cleans up."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.support.console import ROOT


def make(folder: Path, *args: str, **also: str) -> subprocess.CompletedProcess[str]:
    """`make` in a folder with the project's Makefile, as if no other make had called it; ``also``: its environment."""
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        (folder / name).symlink_to(ROOT / name)
    alone = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return subprocess.run(["make", *args], cwd=folder, capture_output=True, text=True, check=False, env=alone | also)


def test_clean_leaves_nothing_that_git_ignores(tmp_path: Path) -> None:
    ignored = [line.strip("/") for line in (ROOT / ".gitignore").read_text().splitlines() if not line.startswith("#")]
    for folder in (Path(name.replace("*", "some")) for name in ignored):
        (tmp_path / folder / "inner").mkdir(parents=True)
    (tmp_path / "jobtree" / "__pycache__").mkdir(parents=True)
    (tmp_path / "jobtree" / "kept.py").touch()

    done = make(tmp_path, "clean")

    assert done.returncode == 0, done.stderr
    there = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert there == {"Makefile", "pyproject.toml", "requirements.lock", "jobtree", "jobtree/kept.py"}


def test_make_names_the_missing_python(tmp_path: Path) -> None:
    done = make(tmp_path, "env", "PYTHON=")

    assert done.returncode == 2
    assert done.stdout == (
        "Jobtree needs Python 3.11 or newer with its venv module; none was found on PATH: "
        "install one, or name it: make PYTHON=/path/to/python3\n"
    )


@pytest.mark.parametrize(("linted", "tested", "code"), [(True, True, 0), (False, True, 2), (True, False, 2)])
def test_lint_runs_beside_the_tests_and_fails_them(tmp_path: Path, linted: bool, tested: bool, code: int) -> None:
    there = tmp_path / ".venv"
    (there / "bin").mkdir(parents=True)
    works = dict.fromkeys(("mypy", "lint-imports", "sqlfluff", "chromium", "chromedriver"), True)
    for name, succeeds in (works | {"python": tested, "ruff": linted}).items():
        (there / "bin" / name).write_text(
            f"#!/bin/sh\necho {name} ran\nexit {0 if succeeds else 3}\n", encoding="utf-8"
        )
        (there / "bin" / name).chmod(0o755)
    (there / ".installed").touch()

    done = make(tmp_path, "test", PATH=f"{there / 'bin'}:{os.environ['PATH']}")

    assert done.returncode == code
    assert done.stdout.startswith("python ran\n")
    assert ("==> lint failed" in done.stdout, "ruff ran" in done.stdout) == (not linted, not linted)
