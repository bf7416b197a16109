"""The manifests of the guides are read as they are printed."""

import msgspec
import pytest

from jobtree.api import Duration, OwnerPath, Run, decode
from jobtree.api.kinds.run import Funding, Locality, Malleable, Resources, RunSpec, Runtime
from jobtree.api.rules.kinds import check_object
from tests.support import documents as doc

HEAD = "apiVersion: rq.davidlangworthy.io/v1\nkind: Run\nmetadata:\n  name: guide\n"
SYS = OwnerPath("org:ai:rai:sys")


def h100(gpus: int) -> Resources:
    return Resources(gpu_type="H100-80GB", total_gpus=gpus)


GUIDES = {
    "a quick start on 8 GPUs": (
        """
spec:
  owner: org:ai:rai:sys
  resources:
    gpuType: H100-80GB
    totalGPUs: 8
  runtime:
    checkpoint: "10m"
""",
        RunSpec(owner=SYS, resources=h100(8), runtime=Runtime(checkpoint=Duration(600))),
    ),
    "128 GPUs in groups of 32, elastic, with a spare": (
        """
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
""",
        RunSpec(
            owner=SYS,
            resources=h100(128),
            locality=Locality(group_gpus=32),
            runtime=Runtime(checkpoint=Duration(1800)),
            malleable=Malleable(min_total_gpus=96, max_total_gpus=160, step_gpus=32),
            spares_given=1,
        ),
    ),
    "32 GPUs, as a Slurm job of 4 nodes": (
        """
spec:
  owner: org:ai:rai:sys
  resources:
    gpuType: H100-80GB
    totalGPUs: 32
  runtime:
    checkpoint: "30m"
  locality:
    groupGPUs: 16
""",
        RunSpec(
            owner=SYS, resources=h100(32), locality=Locality(group_gpus=16), runtime=Runtime(checkpoint=Duration(1800))
        ),
    ),
    "32 GPUs, as a Kueue workload": (
        """
spec:
  owner: org:ai:rai:sys
  resources:
    gpuType: H100-80GB
    totalGPUs: 32
  locality:
    groupGPUs: 16
""",
        RunSpec(owner=SYS, resources=h100(32), locality=Locality(group_gpus=16)),
    ),
    "a run that borrows": (
        """
spec:
  owner: org:ai:rai:sys
  resources: {gpuType: H100-80GB, totalGPUs: 32}
  funding:
    allowBorrow: true
    maxBorrowGPUs: 32
    sponsors:
      - org:ai:mm:vision
""",
        RunSpec(
            owner=SYS,
            resources=h100(32),
            funding=Funding(allow_borrow=True, max_borrow_gpus=32, sponsors=(OwnerPath("org:ai:mm:vision"),)),
        ),
    ),
}


@pytest.mark.parametrize(("text", "spec"), GUIDES.values(), ids=GUIDES)
def test_a_manifest_of_the_guides_is_read_as_printed(text: str, spec: RunSpec) -> None:
    (document,) = doc.load(HEAD + text)
    run = decode("Run", document)
    assert isinstance(run, Run)
    assert (run.spec, run.subject, check_object(run)) == (spec, "Run default/guide", [])
    assert decode("Run", msgspec.json.encode(document)) == run  # JSON as well as YAML
