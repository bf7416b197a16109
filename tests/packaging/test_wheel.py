"""The wheel holds everything, and an empty environment with nothing but it and its dependencies runs the commands."""

import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from tests.support.console import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


def run(*command: str | Path) -> str:
    """Runs a command to its end and gives what it printed; fails with its whole output."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project's wheel, built as `make wheel` builds it."""
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, ROOT)
    (built,) = out.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def bin_dir(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel and its required dependencies, at the locked versions, and no extras."""
    home = tmp_path_factory.mktemp("venv")
    venv.create(home, with_pip=True)
    # pip takes hashes for all or for none, and a wheel just built has none: so the lock's pins without their hashes.
    constraints = home / "constraints.txt"
    lock = (ROOT / "requirements.lock").read_text().splitlines()
    constraints.write_text("\n".join(line.removesuffix("\\") for line in lock if "==" in line))
    pip = (home / "bin" / "python", "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "--no-compile", "--quiet", "--constraint", constraints, wheel)
    run(*pip, "check")
    return home / "bin"


def test_wheel_holds_every_file_of_every_package(wheel: Path) -> None:
    files = (path for package in PACKAGES for path in (ROOT / package).rglob("*") if path.is_file())
    expected = {path.relative_to(ROOT).as_posix() for path in files if "__pycache__" not in path.parts}

    actual = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}

    assert actual == expected


@pytest.mark.slow
def test_commands_start_in_an_empty_environment(bin_dir: Path) -> None:
    commands = sorted(PYPROJECT["project"]["scripts"])

    silent = [command for command in commands if "usage: " not in run(bin_dir / command, "--help")]

    assert silent == []
