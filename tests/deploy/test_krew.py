"""The plugin as krew has it: a manifest that names its archive, whose script runs the plugin."""

import hashlib
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
import yaml

from deploy.krew.pack import archive, manifest
from jobtree import __version__
from tests.kube.helm import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def test_the_manifest_names_the_archive(wheel: Path) -> None:
    data = archive(wheel)
    made = yaml.safe_load(manifest(__version__, "https://example.org/a.tar.gz", data))
    (platform,) = made["spec"]["platforms"]

    assert (made["metadata"]["name"], made["spec"]["version"]) == ("runs", f"v{__version__}")
    assert (platform["uri"], platform["sha256"]) == ("https://example.org/a.tar.gz", hashlib.sha256(data).hexdigest())
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        assert {each.name: each.mode for each in tar.getmembers()} == {
            "kubectl-runs": 0o755, "LICENSE": 0o644, "requirements.lock": 0o644, wheel.name: 0o644,
        }  # fmt: skip
    assert archive(wheel) == data


@pytest.mark.slow
def test_the_script_makes_its_environment_once_and_runs_the_plugin(wheel: Path, tmp_path: Path) -> None:
    with tarfile.open(fileobj=io.BytesIO(archive(wheel))) as tar:
        tar.extractall(tmp_path / "store", filter="data")
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHON": sys.executable}
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "kubectl-runs").symlink_to(tmp_path / "store" / "kubectl-runs")  # as krew does it

    said = [
        subprocess.run([tmp_path / "bin" / "kubectl-runs", "--version"], env=environment, capture_output=True,
                       text=True, check=True, timeout=600)
        for _ in range(2)
    ]  # fmt: skip

    assert [each.stdout for each in said] == [f"kubectl runs {__version__}\n"] * 2
    assert ["making its environment" in each.stderr for each in said] == [True, False]
