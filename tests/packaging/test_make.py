"""What `make` says on a machine that cannot run Jobtree, and what it cleans up."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def make(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """`make` in a folder with the project's Makefile, as if no other make had called it."""
    for name in ("Makefile", "pyproject.toml", "requirements.lock"):
        (folder / name).symlink_to(ROOT / name)
    alone = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    return subprocess.run(["make", *args], cwd=folder, capture_output=True, text=True, check=False, env=alone)


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
