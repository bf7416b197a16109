"""docs/install.md, carried out as printed: installed, used, upgraded, taken away, and all of it lost."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kube.bench import build, processes, tools
from tests.kube.bench.kube import Kube, names
from tests.kube.conftest import skip_or_fail
from tests.kube.helm import NAMESPACE, ROOT, container

PAGE = (ROOT / "docs/install.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture
def empty() -> Iterator[Kube]:
    """A bench of its own, with nodes and without anything of ours."""
    skip_or_fail(name for name in (*processes.THIN, "helm", "kubectl") if name not in {**build.find(), **tools.find()})
    with processes.running(build.find(), thin=True) as running:
        kube = Kube(running, crds=False)
        kube.namespace("default")
        kube.nodes(4)
        yield kube
        kube.close()


class Shell:
    """An administrator's shell on the cluster; ``home``: a folder for helm's own files."""

    def __init__(self, kube: Kube, home: Path) -> None:
        folders = {str(each.parent) for each in tools.find().values()} | {str(Path(sys.executable).parent)}
        path = os.pathsep.join([*sorted(folders), os.environ["PATH"]])
        self._environment = {**os.environ, "PATH": path, "HOME": str(home), "KUBECONFIG": str(kube.kubeconfig())}

    def __call__(self, script: str) -> str:
        """What the commands print; each must succeed."""
        command = ["bash", "-euo", "pipefail", "-c", script]
        done = subprocess.run(
            command, cwd=ROOT, env=self._environment, capture_output=True, text=True, check=False, timeout=180
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
        return done.stdout


def inline(beginning: str) -> str:
    """A command that stands in a sentence."""
    (found,) = {each for each in re.findall(r"`([^`\n]+)`", PAGE) if each.startswith(beginning)}
    return str(found)


def test_every_step_does_what_the_page_says(empty: Kube, tmp_path: Path) -> None:
    install, use, upgrade, newer, lose = BLOCKS
    shell = Shell(empty, tmp_path)

    shell(install.replace("REGISTRY", "registry.example").replace("CLASS", "shared"))
    assert names(empty.objects("batch/v1", "CronJob")) == ["jobtree-cycle", "jobtree-nightly"]
    assert "train-32" in shell(use)
    container(empty, "CronJob", "jobtree-cycle", tmp_path).run("cycle", "--lake", str(tmp_path / "lake"))
    assert "phase: Running" in shell("kubectl runs watch train-32")

    shell(upgrade)
    shell(newer)
    assert "phase: Running" in shell("kubectl runs watch train-32")

    shell(inline("helm uninstall"))
    assert names(empty.objects("batch/v1", "CronJob")) == []
    assert {each["status"].get("closed", False) for each in empty.ours("Lease")} == {False}

    shell(lose)
    crds = names(empty.objects("apiextensions.k8s.io/v1", "CustomResourceDefinition"))
    assert [each for each in crds if each.endswith("davidlangworthy.io")] == []

    shell(inline("kubectl apply -f deploy/crds"))
    shell("kubectl wait --for=condition=Established --timeout=60s -f deploy/crds")
    shell(inline("kubectl apply -k deploy/kustomize/base"))
    assert names(empty.objects("batch/v1", "CronJob")) == ["jobtree-cycle", "jobtree-nightly"]
    assert NAMESPACE in {each["metadata"]["namespace"] for each in empty.objects("batch/v1", "CronJob")}
