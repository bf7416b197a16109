"""What a pod is told by its environment, and what it has as files."""

from typing import Any

import msgspec

from exporters.writes.podspec import Member, manifest
from jobtree.api import dec_hook
from jobtree.api.kinds.policy import PolicySpec
from jobtree.api.kinds.run import Run
from tests.support import documents as doc

MEMBER = Member(rank=3, group=1, node="n2", gpus=4, cycle="20260101T000000Z")
COMMON = {
    "MASTER_ADDR": "r-0.run-r.default.svc",
    "MASTER_PORT": "29500",
    "RANK": "3",
    "LOCAL_RANK": "0",
    "WORLD_SIZE": "6",
    "NNODES": "6",
    "NODE_RANK": "3",
    "JOBTREE_RUN": "r",
    "JOBTREE_GROUP": "1",
}
STATUS = {"phase": "Running", "started": "2026-01-01T00:00:00Z", "timeLimit": "2h"}


def environment(policy: dict[str, Any], status: dict[str, Any], **spec: Any) -> dict[str, str]:
    run = msgspec.convert(
        doc.merge(doc.run("r", 24), {"metadata": {"uid": "0000001f-aa"}, "spec": spec, "status": status}),
        Run, dec_hook=dec_hook,
    )  # fmt: skip
    rules = msgspec.convert(policy, PolicySpec, dec_hook=dec_hook)
    (container,) = manifest(run, run.status, MEMBER, 6, rules)["spec"]["containers"]
    return {each["name"]: each["value"] for each in container["env"]}


def test_a_run_without_limit_has_no_times() -> None:
    assert environment({}, {}) == COMMON


def test_checkpoint_and_time_limit_are_told_in_seconds() -> None:
    """The limit that is enforced: a payer's default where the run has none of its own."""
    assert environment({}, STATUS, runtime={"checkpoint": "10m"}) == {
        **COMMON,
        "JOBTREE_CHECKPOINT_SECONDS": "600",
        "JOBTREE_TIME_LIMIT_SECONDS": "7200",
        "JOBTREE_END_TIME": "1767232800",
    }


def test_slurms_names_are_told_where_the_policy_asks_for_them() -> None:
    found = environment({"podDefaults": {"slurmEnv": True}}, STATUS)
    assert {name: value for name, value in found.items() if name.startswith("SLURM")} == {
        "SLURM_JOB_ID": "31",
        "SLURM_JOB_NAME": "r",
        "SLURM_JOB_PARTITION": "H100-80GB",
        "SLURM_JOB_START_TIME": "1767225600",
        "SLURM_JOB_END_TIME": "1767232800",
        "SLURM_NNODES": "6",
        "SLURM_NTASKS": "6",
        "SLURM_NTASKS_PER_NODE": "1",
        "SLURM_NODEID": "3",
        "SLURM_PROCID": "3",
        "SLURM_LOCALID": "0",
        "SLURM_STEP_ID": "0",
        "SLURM_GPUS_ON_NODE": "4",
        "SLURMD_NODENAME": "n2",
        "SLURM_LAUNCH_NODE_IPADDR": "r-0.run-r.default.svc",
    }


def test_a_cut_that_is_announced_comes_as_files() -> None:
    run = msgspec.convert(doc.merge(doc.run("r", 24), {"metadata": {"uid": "u"}}), Run, dec_hook=dec_hook)
    spec = manifest(run, run.status, MEMBER, 6, PolicySpec())["spec"]
    (volume,) = spec["volumes"]
    assert volume["projected"]["sources"] == [
        {
            "downwardAPI": {
                "items": [
                    {"path": name, "fieldRef": {"fieldPath": f"metadata.annotations['rq.davidlangworthy.io/{name}']"}}
                    for name in ("cut-at", "cut-chance")
                ]
            }
        }
    ]
    (container,) = spec["containers"]
    assert container["volumeMounts"] == [{"name": volume["name"], "mountPath": "/etc/jobtree", "readOnly": True}]
