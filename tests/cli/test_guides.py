"""The guides' manifests and commands, through a real kubectl that finds `kubectl-runs` as its plugin."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.console import ROOT
from tests.support.worlds import World

BIN = Path(sys.executable).parent
#: The researchers' guide prints this run from `spec:` on; its head is given.
TRAINER = """\
apiVersion: rq.davidlangworthy.io/v1
kind: Run
metadata:
  name: trainer-128
spec:
  owner: org:ai:rai:sys
  resources:
    gpuType: H100-80GB
    totalGPUs: 128
  locality:
    groupGPUs: 32        # each model-parallel group stays on one island
  runtime:
    checkpoint: "30m"
  malleable:
    minTotalGPUs: 96
    maxTotalGPUs: 160
    stepGPUs: 32
  spares: 1               # per-group spare
"""


class Kubectl:
    """A real kubectl in a folder with a state file of its own."""

    def __init__(self, folder: Path, state: Path) -> None:
        self.folder = folder
        self.state = state
        self.binary = shutil.which("kubectl", path=f"{BIN}:{os.environ.get('PATH', '')}")

    def runs(self, line: str, at: str, warned: str = "") -> str:
        """Output of ``kubectl runs LINE`` on the file, which says ``warned`` on stderr."""
        assert self.binary is not None, "kubectl comes with the development dependencies: make env"
        done = subprocess.run(
            [self.binary, "runs", "--state", str(self.state), *line.split(), "--at", at],
            cwd=self.folder,
            env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, warned), done.stderr
        return done.stdout


@pytest.fixture
def world() -> World:
    return World().domain("A", nodes=24).domain("B", nodes=8).policy().budget("org:ai:rai:sys", 256, name="rai-sys")


@pytest.fixture
def kubectl(world: World, tmp_path: Path) -> Kubectl:
    for name in ("resnet-small.yaml", "train-32.yaml"):
        shutil.copy(ROOT / "examples" / name, tmp_path)
    (tmp_path / "trainer-128.yaml").write_text(TRAINER)
    return Kubectl(tmp_path, world.save())


@pytest.mark.slow
def test_the_quick_start_works_as_printed(world: World, kubectl: Kubectl) -> None:
    at = "2026-01-01T00:00:00Z"
    assert kubectl.runs("submit -f resnet-small.yaml", at) == (
        "Run rai-sys/resnet-small created\n"
        "\n"
        "Next cycle, Run rai-sys/resnet-small:\n"
        "  earliestStart: 2026-01-01T00:00:00Z on domain=B\n"
        "  intendedSlice: domain=B (nodes b01)\n"
        "  payingEnvelopes: rai-sys/gpus (8)\n"
        "\n"
        f"Run it: jobtree --state {world.path} cycle --at {at}\n"
    )
    world.cycle(at)
    assert kubectl.runs("watch resnet-small", at) == (
        "run: rai-sys/resnet-small\n"
        "phase: Running\n"
        "reason: PodsRunning: 8 of 8 GPUs running.\n"
        "width: 8 of 8 GPUs\n"
        "nodes: b01\n"
        "payers: rai-sys/gpus\n"
    )
    assert kubectl.runs("leases resnet-small", at) == (
        "RUN            GROUP   ROLE     NODES     PAYER          START                  END   REASON\n"
        "resnet-small   0       Active   b01#0-7   rai-sys/gpus   2026-01-01T00:00:00Z   -     Start\n"
    )


@pytest.mark.slow
def test_a_slurm_user_submits_looks_and_accounts(world: World, kubectl: Kubectl) -> None:
    at = "2026-01-01T00:00:00Z"
    kubectl.runs("submit -f train-32.yaml", at)
    world.cycle(at)
    (row,) = (line.split() for line in kubectl.runs("state --owner org:ai:rai:sys", at).splitlines()[1:])
    assert row[:7] == ["default", "train-32", "org:ai:rai:sys", "H100-80GB", "Running", "32/32", "0s"]
    assert row[8:] == ["PodsRunning", "-"]
    assert kubectl.runs("state --all", at) == kubectl.runs("state --owner org:ai:rai:sys", at)
    assert len(kubectl.runs("leases --owner org:ai:rai:sys", at).splitlines()) == 5
    assert kubectl.runs("explain train-32", at).startswith("Run default/train-32\n\nSpec\n  owner: org:ai:rai:sys\n")
    assert kubectl.runs("budgets usage", at).splitlines()[1].split()[:8] == [
        "org:ai:rai:sys", "rai-sys/gpus", "32", "0", "0", "0", "0", "224"
    ]  # fmt: skip


@pytest.mark.slow
def test_the_128_gpu_trainer_starts_with_its_spares_and_shrinks(world: World, kubectl: Kubectl) -> None:
    at = "2026-01-01T00:00:00Z"
    out = kubectl.runs("submit -f trainer-128.yaml", at)
    assert "  earliestStart: 2026-01-01T00:00:00Z on domain=" in out
    world.cycle(at)
    assert "width: 128 of 160 GPUs\n" in kubectl.runs("watch trainer-128", at)
    assert kubectl.runs("shrink trainer-128 --by 32", at) == (
        "Run default/trainer-128 wants 96 GPUs from now on: the next cycle takes 32 of its 128\n"
    )
    assert kubectl.runs("plan trainer-128", at).startswith("runningSince: 2026-01-01T00:00:00Z on domain=")
