"""`migrate`: Slurm's scripts and Kueue's manifests become what `submit` takes, and what is left out is said."""

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtree.importers.made import Made
from jobtree.importers.slurm import Defaults, read
from tests.support import documents as doc
from tests.support.commands import jobtree
from tests.support.effort import examples
from tests.support.times import T0
from tests.support.worlds import World

SCRIPT = """\
#!/bin/bash
#SBATCH --nodes=4
#SBATCH --gres=gpu:8
#SBATCH --time=12:00:00
{}
srun python train.py
#SBATCH --nodes=9
"""
MANY = "9" * 5000
"""More digits than Python makes a number of."""
LEFT = "note: train: its commands are left out, as no --image says what runs them\n"


def slurm(*lines: str, flavor: str | None = doc.FLAVOR, owner: str | None = "org:a") -> doc.Document:
    """The spec of the Run of a script with these lines at its head."""
    made = Made()
    read(
        made, "\n".join(("#!/bin/sh", *(f"#SBATCH {line}" for line in lines), "srun x")), "job", Defaults(owner, flavor)
    )
    (run,) = made.documents
    return dict(run["spec"])


def test_a_script_becomes_a_run_that_starts(tmp_path: Path) -> None:
    script = tmp_path / "train.sh"
    script.write_text(SCRIPT.format("#SBATCH --account=a -p gpu"))
    output = jobtree("migrate", "slurm", script, "--flavor", doc.FLAVOR).ok()
    (run,) = doc.load(output.out)

    assert (run["metadata"], run["spec"]) == (
        {"name": "train"},
        {
            "owner": "org:a", "resources": {"gpuType": doc.FLAVOR, "totalGPUs": 32, "gpusPerPod": 8},
            "runtime": {"timeLimit": "12h"},
        },
    )  # fmt: skip
    assert output.err == f"{LEFT}note: train: left out: --partition=gpu\n"
    world = World().domain("A", nodes=4).budget("org:a", 32)
    world.runs("submit", "-f", "-", at=T0, stdin=output.out).ok()
    assert world.cycle().running == ["train"]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["-N2 --gpus-per-node=h100:4"], {"resources": {"gpuType": "h100", "totalGPUs": 8, "gpusPerPod": 4}}),
        (["--gpus 6", "--gres=lustre:1"], {"resources": {"gpuType": "h", "totalGPUs": 6}}),
        (["-n 3 --gpus-per-task=2"], {"resources": {"gpuType": "h", "totalGPUs": 6}}),
        (["-n 2 -c 4 --mem-per-cpu=2G"], {"resources": {"pods": 2, "cpuPerPod": "4", "memoryPerPod": "8Gi"}}),
        (["-n 8 -N 2 -c 4 --mem=16G"], {"resources": {"pods": 8, "cpuPerPod": "4", "memoryPerPod": "4Gi"}}),
        (
            ["-N 4 --ntasks-per-node=8 --gpus-per-task=1"],
            {
                "resources": {"gpuType": "h", "totalGPUs": 32, "gpusPerPod": 8},
            },
        ),
        (
            ["-n 16 --ntasks-per-node=8 --gres=gpu:8"],
            {
                "resources": {"gpuType": "h", "totalGPUs": 16, "gpusPerPod": 8},
            },
        ),
        (["-n 4 --ntasks-per-node=1 --gres=gpu:8"], {"resources": {"gpuType": "h", "totalGPUs": 32, "gpusPerPod": 8}}),
        (["-n 4 --gres=gpu:8"], {"resources": {"gpuType": "h", "totalGPUs": 8, "gpusPerPod": 8}}),
        (["-N 2 --ntasks-per-node=3"], {"resources": {"pods": 6, "cpuPerPod": "1", "memoryPerPod": "1Gi"}}),
        (["-G1 -a 1,3,5-9:2%2"], {"array": {"indices": [1, 3, 5, 7, 9], "maxParallel": 2}}),
        (["-G1 --array=0-4"], {"array": {"count": 5}}),
        (["-G1 -H --no-requeue"], {"state": "Suspended", "runtime": {"requeue": False}}),
        (["-G1 -t 90"], {"runtime": {"timeLimit": "1h30m"}}),
        (["-G1 -t 10:30"], {"runtime": {"timeLimit": "10m30s"}}),
        (["-G1 -t 1-12"], {"runtime": {"timeLimit": "36h"}}),
        (["-G1 -t 2-0:30"], {"runtime": {"timeLimit": "48h30m"}}),
    ],
)
def test_what_options_say(lines: list[str], said: doc.Document) -> None:
    flavor = None if "h100" in lines[0] else "h"
    assert {key: value for key, value in slurm(*lines, flavor=flavor).items() if key in said} == said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("--gres=gpu:8", "gpu:8 says no type of GPU; say --flavor FLAVOR"),
        ("--gpus=h100:none", "h100:none is no number of GPUs; allowed is such as gpu:h100:8"),
        ("--gpus=h100:1 --time=soon", "--time=soon is no time; allowed are minutes, H:M:S and D-H:M:S"),
        ("--gpus=h100:1 --array=a", "--array=a is no list of indices; allowed is such as 0-9%4"),
        (
            "--gpus=h100:1 --array=0-99999999999",
            "--array=0-99999999999 has more indices than the 10000 that an array may have",
        ),
        ("--job-name='a", '"#SBATCH --job-name=\'a": No closing quotation'),
        ("--nodes=0", "--nodes=0 is no number; allowed is a whole number above 0"),
        (f"--nodes={MANY}", f"--nodes={MANY} is no number; allowed is a whole number above 0"),
        (f"--gpus=h100:{MANY}", f"h100:{MANY} is no number of GPUs; allowed is such as gpu:h100:8"),
        ("--gpus=h100:1 --array=0-9:00", "--array=0-9:00 is no list of indices; allowed is such as 0-9%4"),
        ("--gpus=h100:1", "it names no --account; say --owner OWNER"),
    ],
)
def test_a_script_that_says_too_little_is_refused(tmp_path: Path, line: str, said: str) -> None:
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/sh\n#SBATCH {line}\n")
    owner = [] if "account" in said else ["--owner", "org:a"]
    assert jobtree("migrate", "slurm", script, *owner).refused() == f"error: {script}: {said}"


@examples(50)
@given(st.text(max_size=200) | st.from_regex(r"(#SBATCH --[a-z-]{1,14}[= ][\w:,%=-]{0,12}\n){1,4}", fullmatch=True))
def test_any_text_is_a_run_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    script = tmp_path_factory.mktemp("scripts") / "job.sh"
    script.write_text(text, encoding="utf-8")
    output = jobtree("migrate", "slurm", script, "--owner", "org:a", "--flavor", "h")
    assert (output.code == 0 and len(doc.load(output.out)) == 1) or output.refused()


QUEUES = """\
kind: ResourceFlavor
metadata: {name: hopper}
spec: {nodeLabels: {gpu.flavor: H100-80GB, region: us-west}}
---
kind: ClusterQueue
metadata: {name: rai}
spec:
  cohort: ai
  preemption: {reclaimWithinCohort: Any}
  resourceGroups:
  - coveredResources: [cpu, nvidia.com/gpu]
    flavors:
    - name: hopper
      resources: [{name: cpu, nominalQuota: 9}, {name: nvidia.com/gpu, nominalQuota: 16, borrowingLimit: 8}]
---
kind: LocalQueue
metadata: {name: rai-gpu, namespace: team}
spec: {clusterQueue: rai}
---
apiVersion: batch/v1
kind: Job
metadata: {name: trainer, namespace: team, labels: {kueue.x-k8s.io/queue-name: rai-gpu}}
spec:
  parallelism: 2
  activeDeadlineSeconds: 3600
  template:
    spec:
      priorityClassName: high
      restartPolicy: Never
      containers: [{name: main, image: train, resources: {limits: {nvidia.com/gpu: 8}}}]
"""


def test_queues_and_jobs_become_budgets_and_runs_that_start(tmp_path: Path) -> None:
    file = tmp_path / "kueue.yaml"
    file.write_text(QUEUES)
    output = jobtree("migrate", "kueue", file).ok()
    budget, run = doc.load(output.out)

    assert budget["spec"] == {
        "owner": "org:ai:rai", "namespaces": ["team"], "parents": ["org:ai"],
        "envelopes": [
            {
                "name": "hopper", "flavor": doc.FLAVOR, "selector": {"region": "us-west"}, "concurrency": 16,
                "sharing": "family",
            }
        ],
    }  # fmt: skip
    assert {key: value for key, value in run["spec"].items() if key != "template"} == {
        "owner": "org:ai:rai", "resources": {"gpuType": doc.FLAVOR, "totalGPUs": 16, "gpusPerPod": 8},
        "runtime": {"timeLimit": "1h"},
    }  # fmt: skip
    assert output.err.splitlines() == [
        "note: ClusterQueue rai: left out of flavor hopper: borrowingLimit",
        "note: ClusterQueue rai: left out: preemption",
        "note: Job trainer: left out: priorityClassName",
    ]
    world = World().domain("A", nodes=2)
    world.runs("submit", "-f", "-", at=T0, stdin=output.out).ok()
    assert world.cycle().running == ["trainer"]


def test_queues_of_a_cohort_share_as_a_family(tmp_path: Path) -> None:
    """What one queue does not use another one may, as Kueue's borrowing within a cohort."""
    file, other = tmp_path / "kueue.yaml", tmp_path / "other.yaml"
    file.write_text(QUEUES)
    second = [each for each in doc.load(QUEUES) if each["kind"] == "ClusterQueue"]
    other.write_text(doc.dump([doc.merge(each, {"metadata": {"name": "lab"}}) for each in second]))
    made = doc.load(jobtree("migrate", "kueue", file, other).ok().out)
    wide = doc.merge(made[-1], {"spec": {"resources": {"totalGPUs": 32}}})
    world = World().domain("A", nodes=4).add(*made[:-1], wide)
    assert world.cycle().funding("trainer") == {"owned": 16, "shared": 16}


def test_a_job_of_an_unknown_queue_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "kueue.yaml"
    file.write_text(QUEUES.replace("queue-name: rai-gpu", "queue-name: other"))
    assert jobtree("migrate", "kueue", file).refused() == (
        f"error: {file}: Job team/trainer: there is no LocalQueue other in its namespace with a ClusterQueue"
    )


def kueue(tmp_path: Path, old: str, new: str) -> str:
    """Why a file in which something else stands is refused, without its name."""
    file = tmp_path / "kueue.yaml"
    file.write_text(QUEUES.replace(old, new))
    return jobtree("migrate", "kueue", file).refused().removeprefix(f"error: {file}: ")


def test_a_quota_may_have_a_suffix(tmp_path: Path) -> None:
    file = tmp_path / "kueue.yaml"
    file.write_text(QUEUES.replace("nominalQuota: 16", "nominalQuota: 8k"))
    budget, _ = doc.load(jobtree("migrate", "kueue", file).ok().out)
    assert budget["spec"]["envelopes"][0]["concurrency"] == 8000


@pytest.mark.parametrize("given", ["-3", "2.5", "true", MANY, "[8]"])
@pytest.mark.parametrize(
    ("old", "field"),
    [
        ("nominalQuota: 16", "ClusterQueue rai: nominalQuota of hopper"),
        ("parallelism: 2", "Job team/trainer: spec.parallelism"),
        ("activeDeadlineSeconds: 3600", "Job team/trainer: spec.activeDeadlineSeconds"),
        ("nvidia.com/gpu: 8", "Job team/trainer: nvidia.com/gpu"),
    ],
)
def test_what_is_no_count_is_refused_by_its_field(tmp_path: Path, old: str, field: str, given: str) -> None:
    said = kueue(tmp_path, old, f"{old.rpartition(': ')[0]}: {given}")
    assert said.startswith(f"{field}: ")
    assert "; allowed is a" in said


@pytest.mark.parametrize(
    "hostile",
    [
        f"x: {MANY}",
        "x: 2026-02-30",
        "x: " + "[" * 20_000,
        "a: &a [1]\n" + "".join(f"{n}: &{n} [*{p}, *{p}, *{p}, *{p}]\n" for p, n in pairwise("abcdefghijklmn")),
    ],
    ids=["a long number", "no day of the calendar", "deep", "aliases"],
)
def test_a_hostile_manifest_is_left_out_or_refused(tmp_path: Path, hostile: str) -> None:
    file = tmp_path / "kueue.yaml"
    file.write_text(f"kind: Other\nmetadata: {{name: other}}\n{hostile}\n---\n{QUEUES}")
    output = jobtree("migrate", "kueue", file)
    assert (output.code == 0 and len(doc.load(output.out)) == 2) or output.refused()
