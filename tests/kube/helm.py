"""helm on the bench, and what a kubelet would do with the chart's pods: the same command with the same environment."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cronjobs.unbroken import unbroken
from tests.kube.bench import tools
from tests.kube.bench.build import KUBERNETES

if TYPE_CHECKING:  # who renders the chart alone needs no client
    from tests.kube.bench.kube import Kube, Object

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "gpu-fleet"
NAMESPACE = "jobtree-system"


def run(
    command: Sequence[str | Path], *, check: bool = True, stdin: str = "", env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end; with ``check`` it must succeed."""
    done = subprocess.run(command, text=True, capture_output=True, check=False, timeout=120, input=stdin, env=env)
    assert done.returncode == 0 or not check, f"{done.stdout}{done.stderr}"
    return done


def rendered(*values: str) -> str:
    """What `helm template` makes of the chart; ``values``: as ``--set`` takes them."""
    sets = [part for each in values for part in ("--set", each)]
    helm = tools.find()["helm"]
    command = [helm, "template", "jobtree", CHART, "--namespace", NAMESPACE, "--kube-version", KUBERNETES, *sets]
    return run(command).stdout


@dataclass
class Helm:
    """Releases of the chart on a bench, as its admin. ``home``: a folder for helm's own files."""

    kube: Kube
    home: Path

    def __call__(self, *words: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
        """``helm WORDS`` in the planner's namespace."""
        command = [tools.find()["helm"], "--namespace", NAMESPACE, "--kubeconfig", self.kube.kubeconfig(), *words]
        return run(command, check=check, env={**os.environ, "HOME": str(self.home)})

    def kubectl(self, *words: str | Path, stdin: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        """``kubectl WORDS`` as admin."""
        command = [tools.find()["kubectl"], "--kubeconfig", self.kube.kubeconfig(), *words]
        return run(command, check=check, stdin=stdin)


@dataclass
class Container:
    """The one container of a pod of the chart, as a process of this machine; ``folder`` has its volumes."""

    kube: Kube
    pod: Object
    folder: Path

    @property
    def args(self) -> list[str]:
        """Its arguments, with the places of its volumes here."""
        return [self._here(each) for each in self._container["args"]]

    def command(self, *args: str) -> list[str]:
        """What runs it: the image's ENTRYPOINT and its arguments, or others."""
        return [str(Path(sys.executable).with_name("jobtree")), *(args or self.args)]

    def environment(self) -> dict[str, str]:
        """Its environment alone, and the credentials of its ServiceAccount in place of the mounted ones."""
        stated = {each["name"]: self._here(each["value"]) for each in self._container["env"]}
        token = self.kube.account(NAMESPACE, self.pod["serviceAccountName"])
        (self.folder / "tmp").mkdir(parents=True, exist_ok=True)
        return {**stated, "KUBECONFIG": str(self.kube.kubeconfig(token)), "PATH": os.environ["PATH"]}

    def run(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs it to its end."""
        return run(self.command(*args), env=self.environment(), check=check)

    @contextmanager
    def over_and_over(self) -> Iterator[subprocess.Popen[str]]:
        """Runs it again and again, as its CronJob would. Whatever ends the block ends it too, with all that it started.

        A cycle that has begun its writes ends them first.
        """
        loop = ["/bin/sh", "-c", f"while {shlex.join(self.command())}; do :; done"]
        environment, child = self.environment(), None
        try:
            with unbroken():  # what is started is known by then to who ends it
                child = subprocess.Popen(loop, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                         start_new_session=True, text=True)  # fmt: skip
            yield child
        finally:
            if child is not None:
                with child, suppress(ProcessLookupError):
                    os.killpg(child.pid, signal.SIGTERM)
                    child.wait(120)

    @property
    def _container(self) -> Object:
        (one,) = self.pod["containers"]
        return dict(one)

    def _here(self, text: str) -> str:
        for mount in self._container["volumeMounts"]:
            if text == mount["mountPath"] or text.startswith(f"{mount['mountPath']}/"):
                return str(self.folder / mount["name"]) + text.removeprefix(mount["mountPath"])
        return text


def container(kube: Kube, kind: str, name: str, folder: Path) -> Container:
    """The container of an installed CronJob or Deployment."""
    version = {"CronJob": "batch/v1", "Deployment": "apps/v1"}[kind]
    spec = kube.get(version, kind, NAMESPACE, name)["spec"]
    spec = spec["jobTemplate"]["spec"] if kind == "CronJob" else spec
    return Container(kube, spec["template"]["spec"], folder)
