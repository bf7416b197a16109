"""Jobtree on a real Kubernetes, on this machine: ``make demo-kube``.

Starts the tests' Kubernetes (etcd, apiserver, controllers, scheduler, and kwok for kubelets, so nodes and pods cost
nothing), installs the Helm chart, submits two Runs, watches them start, takes a node away, and looks at the metrics.
kwok runs no images, so the planner is a process here: the CronJob's own command, as its ServiceAccount. Nothing is left
behind at the end, nor after Ctrl-C. Exits 1 when anything is not as it should be.
"""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from jobtree.api import API_VERSION
from tests.kube.bench import build, processes, tools
from tests.kube.bench.kube import Kube
from tests.kube.helm import CHART, NAMESPACE, Container, container

HERE = Path(__file__).parent
RUNS = {"resnet-small": ("rai-sys", 8), "train-32": ("default", 32)}
PATIENCE = 120
"""Seconds to wait for anything."""


class DemoError(Exception):
    """Something is not as it should be."""


def main(console: Console | None = None) -> int:
    """Runs the demo. Returns the exit code."""
    out = console or Console(highlight=False)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    found = {**build.find(), **tools.find()}
    if missing := [name for name in (*build.COMMANDS, "helm", "kubectl") if name not in found]:
        out.print(f"[bold red]The demo needs {', '.join(missing)}:[/] `make kube tools` makes them")
        return 1
    try:
        out.print("[bold]A Kubernetes starts[/] (etcd, apiserver, controllers, scheduler, kwok)")
        with processes.running(build.find()) as running, tempfile.TemporaryDirectory() as folder:
            kube = Kube(running, crds=False)
            try:
                _tell(out, kube, Path(folder))
            finally:
                kube.close()
    except KeyboardInterrupt:
        out.print("\nStopped; nothing is left behind")
        return 130
    except (DemoError, AssertionError) as error:
        out.print(f"[bold red]The demo failed:[/] {escape(str(error))}")
        return 1
    out.print("\n[bold]The end:[/] the Kubernetes is gone, nothing is left behind")
    return 0


def _tell(out: Console, kube: Kube, folder: Path) -> None:
    bin_ = Path(sys.executable).parent

    def shell(*words: str) -> str:
        """Shows a command as a user types it, and what it says."""
        out.print(f"\n[bold green]$[/] [bold]{escape(' '.join(words))}[/]", soft_wrap=True)
        names = {**tools.find(), "kubectl-runs": bin_ / "kubectl-runs"}
        environment = {"KUBECONFIG": str(kube.kubeconfig()), "HOME": str(folder), "PATH": str(bin_)}
        done = subprocess.run(
            [names[words[0]], *words[1:]], env=environment, cwd=HERE.parent, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise DemoError(f"{' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
        out.print(escape(done.stdout.rstrip()), soft_wrap=True)
        return done.stdout

    for name in (NAMESPACE, "rai-sys"):
        kube.namespace(name)
    kube.nodes(4, prefix="a", domain="A")
    kube.nodes(4, prefix="b", domain="B")
    chart = str(CHART.relative_to(HERE.parent))
    shell("helm", "install", "jobtree", chart, "--namespace", NAMESPACE, "--set", "cycle.suspend=true")
    shell("kubectl", "apply", "-f", "examples/kube/budget.yaml")
    shell("kubectl-runs", "submit", "-f", "examples/resnet-small.yaml")
    shell("kubectl-runs", "submit", "-f", "examples/train-32.yaml")
    planner = container(kube, "CronJob", "jobtree-cycle", folder)
    with _planning(out, planner):
        wanted = {name: gpus for name, (_, gpus) in RUNS.items()}
        _until(out, "all pods of both runs are Running", lambda: _running(kube) == wanted)
        shell("kubectl-runs", "state", "--all")
        shell("kubectl-runs", "leases", "--owner", "org:ai:rai:sys")
        node = next(each for each in _leases(kube) if each[0] == "resnet-small")[1]
        out.print(f"\n[bold]The node {node} breaks[/]")
        shell("kubectl", "taint", "node", node, "node.kubernetes.io/out-of-service=broken:NoExecute")
        _until(out, "resnet-small runs on another node", lambda: _moved(kube, "resnet-small", node))
        shell("kubectl-runs", "leases", "resnet-small")
        shell("kubectl", "get", "events", "--namespace", "rai-sys", "--field-selector", "involvedObject.kind=Run")
        shell("kubectl-runs", "fleet", "--domain")
    metrics = planner.run("metrics", "--lake", planner.args[-1]).stdout
    asked = ("jobtree_fleet_gpus", "jobtree_resolver_actions_total", "jobtree_last_cycle")
    shown = [line for line in metrics.splitlines() if line.startswith(asked) and not line.endswith(" 0.0")]
    out.print("\n[bold]The metrics of the last cycle[/]", *map(escape, shown), sep="\n", soft_wrap=True)
    shell("helm", "uninstall", "jobtree", "--namespace", NAMESPACE)


@contextmanager
def _planning(out: Console, planner: Container) -> Iterator[None]:
    """The planner at work, minute after minute, as the CronJob would start it."""
    out.print(
        f"\n[bold]The planner runs[/] as the CronJob says: jobtree {escape(' '.join(planner.args))}", soft_wrap=True
    )
    with planner.over_and_over() as child:
        yield
        if child.poll() is not None:
            raise DemoError(f"the planner ended: {child.communicate()[1].strip()}")


def _until(out: Console, what: str, condition: Callable[[], bool]) -> None:
    began = time.monotonic()
    with out.status(f"waiting until {what}"):
        while not condition():
            if time.monotonic() - began > PATIENCE:
                raise DemoError(f"not so within {PATIENCE} s: {what}")
            time.sleep(0.2)
    out.print(f"\n[bold]After {time.monotonic() - began:.0f} s {what}[/]")


def _running(kube: Kube) -> dict[str, int]:
    """GPUs in pods that are Running, by run."""
    found: dict[str, int] = {}
    for pod in kube.objects("v1", "Pod", label_selector="rq.davidlangworthy.io/run"):
        if pod.get("status", {}).get("phase") == "Running":
            run = pod["metadata"]["labels"]["rq.davidlangworthy.io/run"]
            gpus = pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"]
            found[run] = found.get(run, 0) + int(gpus)
    return found


def _leases(kube: Kube) -> list[tuple[str, str]]:
    """Run and node of each open lease."""
    opened = [each for each in kube.ours("Lease") if not each.get("status", {}).get("closed")]
    return [(each["spec"]["runRef"]["name"], each["spec"]["slice"]["nodes"][0].partition("#")[0]) for each in opened]


def _moved(kube: Kube, run: str, node: str) -> bool:
    phase = kube.get(API_VERSION, "Run", RUNS[run][0], run)["status"]["phase"]
    nodes = [where for name, where in _leases(kube) if name == run]
    return phase == "Running" and nodes != [] and node not in nodes and _running(kube).get(run) == RUNS[run][1]


if __name__ == "__main__":
    sys.exit(main())
