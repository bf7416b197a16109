"""The image's recipe: what it may not do, and its steps carried out here, without docker, in a folder."""

import contextlib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from jobtree import __version__
from tests.kube.helm import ROOT

RECIPE = re.sub(r"\\\n", " ", (ROOT / "deploy" / "Dockerfile").read_text())
STEPS = [line.split(maxsplit=1) for line in RECIPE.splitlines() if line and not line.startswith("#")]
LOCK = (ROOT / "deploy" / "requirements.lock").read_text()
WHOLE = (ROOT / "requirements.lock").read_text()


def stages() -> list[list[list[str]]]:
    """The steps of each stage, its FROM first."""
    starts = [place for place, step in enumerate(STEPS) if step[0] == "FROM"]
    return [STEPS[start:end] for start, end in zip(starts, [*starts[1:], len(STEPS)], strict=True)]


def entries(text: str) -> set[str]:
    """Each pin of a lock with its hashes, without the notes of who wants it."""
    found = re.findall(r"^(\S.*?)\s*\\\n((?: +--hash=\S+.*\n)+)", text, re.MULTILINE)
    return {f"{pin} {' '.join(sorted(re.findall(r'sha256:[0-9a-f]+', hashes)))}" for pin, hashes in found}


def test_the_last_stage_runs_nothing_and_as_nobody() -> None:
    *_, last = stages()
    assert {step[0] for step in last} == {"FROM", "COPY", "ENV", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}
    assert ["USER", "65532:65532"] in last
    assert ["ENTRYPOINT", '["jobtree"]'] in last
    assert [step[1].split()[0] for step in last if step[0] == "COPY"] == ["--from=build"]


def test_the_images_lock_is_a_part_of_the_whole_one() -> None:
    assert entries(LOCK) - entries(WHOLE) == set()
    names = {entry.split("==")[0] for entry in entries(LOCK)}
    assert {"kubernetes", "orjson", "prometheus-client", "duckdb", "universal-pathlib", "highspy"} <= names
    assert {"pytest", "mypy", "ruff", "selenium"} & names == set()


NOBODY: dict[str, Any] = {"user": 65532, "group": 65532, "extra_groups": []} if os.getuid() == 0 else {}
"""Who runs what was installed: the image's user, or where these tests are not root's, whoever they are."""


def interpreter() -> str:
    """A Python that `NOBODY` may run, to make the environment with."""
    for each in (sys.executable, "/usr/bin/python3"):
        with contextlib.suppress(PermissionError, FileNotFoundError):
            new = [each, "-c", "import sys, venv; sys.exit(sys.version_info < (3, 11))"]
            if subprocess.run(new, cwd="/", check=False, capture_output=True, **NOBODY).returncode == 0:
                return each
    pytest.skip("no Python here that another user may run")


@pytest.mark.slow
def test_the_steps_install_what_runs_as_nobody_without_a_home() -> None:
    python, (build, *_) = interpreter(), stages()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "src").mkdir()
        wheel = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder / "src"), str(ROOT)]
        subprocess.run(wheel, check=True, capture_output=True)
        (folder / "src" / "requirements.lock").write_text(LOCK)
        for words in (words for verb, words in build if verb == "RUN"):
            here = words.replace("/opt/jobtree", f"{folder}/jobtree").replace("/src/", f"{folder}/src/")
            here = here.replace("python -m venv", f"{python} -m venv").replace(
                "python -m pip", f"{sys.executable} -m pip"
            )
            environment = {**os.environ, "DRIVERS": "", "SOURCE_DATE_EPOCH": "1700000000"}
            done = subprocess.run(here, shell=True, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
        assert max(each.lstat().st_mtime for each in (folder / "jobtree").rglob("*")) <= 1_700_000_000

        command = [str(folder / "jobtree" / "bin" / "jobtree"), "--version"]
        bare = {"HOME": "/proc", "PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, env=bare, cwd="/", capture_output=True, text=True, check=False, **NOBODY)

    assert (done.returncode, done.stdout, done.stderr) == (0, f"jobtree {__version__}\n", "")
