"""A fleet of one's own, from nothing (case U6), and all faults of a manifest at once (case U14)."""

import json
from pathlib import Path

import pytest

from jobtree.world.naming.needs import left_out
from tests.support import documents as doc
from tests.support.commands import jobtree, kubectl_runs
from tests.support.times import T0
from tests.support.worlds import State, World

BROKEN = """\
apiVersion: rq.davidlangworthy.io/v1
kind: Run
metadata:
  name: three
spec:
  owner: "org a"
  resources:
    gpuType: H100-80GB
    totalGPUs: 8
    gpusPerPod: 3
  runtime:
    checkpoint: 10 minutes
  spare: 1
"""


def written(path: Path, *documents: doc.Document) -> Path:
    path.write_text(doc.dump(documents))
    return path


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / "fleet.yaml"


def test_u6_a_fleet_begins_with_nodes_and_budgets_on_a_missing_file(tmp_path: Path, state: Path) -> None:
    nodes = written(tmp_path / "nodes.yaml", *(doc.node(f"a{number:02}") for number in (1, 2)))
    rest = written(tmp_path / "budgets.yaml", doc.budget("org:a", [doc.envelope(16)]), doc.run("r", 16))
    output = kubectl_runs("--state", state, "submit", "-f", nodes, "-f", rest, "--at", T0).ok()
    assert output.err == ""
    assert output.out == (
        "2 Nodes created: a01-a02\n"
        "Budget org-a created\n"
        "Run default/r created\n"
        "\n"
        "Next cycle, Run default/r:\n"
        "  earliestStart: 2026-01-01T00:00:00Z on domain=d1\n"
        "  intendedSlice: domain=d1 (nodes a01-a02)\n"
        "  payingEnvelopes: org-a/gpus (16)\n"
        "\n"
        f"Run it: jobtree --state {state} cycle --at {T0}\n"
    )
    jobtree("--state", state, "cycle", "--at", T0).ok()
    assert State(doc.read(state)).running == ["r"]


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_u6_what_kubectl_prints_of_nodes_is_submitted_and_is_a_state_file_itself(tmp_path: Path, form: str) -> None:
    listed = {"apiVersion": "v1", "kind": "List", "items": [doc.node("a01"), doc.node("cpu", 0, flavor=None)]}
    printed = tmp_path / f"nodes.{form}"
    printed.write_text(json.dumps(listed) if form == "json" else doc.dump([listed]))
    state = tmp_path / "fleet.yaml"
    output = kubectl_runs("--state", state, "submit", "-f", printed, "--at", T0).ok()
    assert output.out.startswith("2 Nodes created: a01,cpu\n")
    fleets = [kubectl_runs("--state", each, "fleet").ok().out.splitlines()[1].split() for each in (state, printed)]
    assert fleets == [["H100-80GB", "8", "0", "0", "0", "0", "0", "8", "8"]] * 2


def test_u6_nodes_keep_status_uid_and_times_and_what_they_do_not_state(tmp_path: Path, state: Path) -> None:
    said = doc.merge(doc.node("a01"), {"metadata": {"uid": "u-1", "creationTimestamp": "2025-01-01T00:00:00Z"}})
    bare = doc.node("a02")
    file = written(tmp_path / "nodes.yaml", said, bare)
    kubectl_runs("--state", state, "submit", "-f", file, "--at", T0).ok()
    first = State(doc.read(state))
    assert first.get("Node", "a01") == said
    stamp = first.get("Node", "a02")["metadata"]
    assert (stamp["creationTimestamp"], len(stamp["uid"])) == (T0, 36)
    again = kubectl_runs("--state", state, "submit", "-f", file, "--at", "2026-02-01").ok()
    assert again.out.startswith("2 Nodes unchanged: a01-a02\n")
    smaller = doc.merge(bare, {"status": {"allocatable": {"nvidia.com/gpu": "4"}}, "spec": {"unschedulable": True}})
    written(file, smaller)
    assert kubectl_runs("--state", state, "submit", "-f", file, "--at", T0).ok().out.startswith("Node a02 configured\n")
    assert State(doc.read(state)).get("Node", "a02") == doc.merge(smaller, {"metadata": stamp})


@pytest.mark.parametrize(
    ("node", "said"),
    [
        (
            doc.node("n", 1001),
            "error: Node n: allocatable nvidia.com/gpu is 1001; allowed is at most 1000 GPUs on one node",
        ),
        (doc.merge(doc.node("n"), {"apiVersion": "x/v1"}), 'error: Node n: apiVersion is "x/v1"; allowed is v1'),
        (doc.merge(doc.node("n"), {"spec": {"taints": 3}}), "error: Node n: spec.taints is 3; allowed is a list"),
    ],
)
def test_u6_a_node_that_cannot_be_used_is_refused(tmp_path: Path, state: Path, node: doc.Document, said: str) -> None:
    output = kubectl_runs("--state", state, "submit", "-f", written(tmp_path / "n.yaml", node))
    assert (output.refused().startswith(said), state.exists()) == (True, False), output.err


def test_u6_a_node_without_a_flavor_is_warned_of_as_is_a_flavor_that_no_node_has(tmp_path: Path, state: Path) -> None:
    file = written(tmp_path / "m.yaml", doc.node("n", flavor=None), doc.node("m", flavor="T4"), doc.run("r", 1))
    world = written(state, doc.budget("org:a", [doc.envelope(1)]))
    output = kubectl_runs("--state", world, "submit", "-f", file, "--at", T0).ok()
    assert output.err.splitlines() == [
        f"warning: Node n: {left_out('gpu.flavor')}",
        "warning: Run default/r: spec.resources.gpuType is H100-80GB, and no node has it; there are T4",
    ]


def test_u14_every_fault_of_a_manifest_is_reported(tmp_path: Path) -> None:
    world = World().node("n").budget("org:a", 8)
    file = tmp_path / "three.yaml"
    file.write_text(BROKEN)
    before = world.save().read_bytes()
    output = world.runs("submit", "-f", file, at=T0)
    assert (output.code, output.out) == (1, "")
    assert [line.partition("; ")[0] for line in output.err.splitlines()] == [
        'error: Run default/three: spec.owner is "org a"',
        'error: Run default/three: spec.runtime.checkpoint is "10 minutes"',
        "error: Run default/three: spec.spare is not a field of Run",
        "error: Run default/three: spec.resources.gpusPerPod is 3",
    ]
    assert world.path.read_bytes() == before


@pytest.mark.parametrize(
    ("spec", "fields"),
    [
        ({"owner": None, "resources": {"totalGPUs": 0, "gpuType": 7}}, ["owner", "gpuType", "totalGPUs"]),
        (
            {"malleable": {"minTotalGPUs": 16, "maxTotalGPUs": 8, "stepGPUs": 0}, "runtime": {"expected": "0s"}},
            ["stepGPUs", "minTotalGPUs", "expected"],
        ),
        (
            {"array": {"count": 0}, "follow": {"after": ["r", "b", "b"]}, "gang": {"name": "g", "size": 2, "sise": 1}},
            ["array.count", "sise", "after[0]", "after[2]", "gang.name"],
        ),
        (
            {"template": {"spec": {"containers": [{}], "nodeName": "n", "schedulerName": "s"}}, "parent": "r"},
            ["parent", "nodeName", "schedulerName"],
        ),
    ],
)
def test_u14_faults_of_every_kind_are_found_together(tmp_path: Path, spec: doc.Document, fields: list[str]) -> None:
    file = written(tmp_path / "m.yaml", doc.merge(doc.run("r", 8), {"spec": spec}))
    said = World().runs("submit", "-f", file, at=T0).err.splitlines()
    assert [any(field in line for line in said) for field in fields] == [True] * len(fields), said
    assert len(said) == len(fields), said


def test_u14_faults_of_several_objects_and_files_are_found_together(tmp_path: Path) -> None:
    one = written(tmp_path / "1.yaml", doc.run("r", 0), {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "p"}})
    budget = doc.budget("org:a", [doc.envelope(8, start="x"), doc.envelope(0)])
    two = written(tmp_path / "2.yaml", budget, doc.policy(mode="strict"))
    assert [line.partition(";")[0] for line in World().runs("submit", "-f", one, "-f", two).err.splitlines()] == [
        "error: Run default/r: spec.resources.totalGPUs is 0",
        f"error: {one}: Pod default/p cannot be submitted",
        'error: Budget org-a: spec.envelopes[0].start is "x"',
        "error: Budget org-a: spec.envelopes[1].concurrency is 0",
        'error: Budget org-a: spec.envelopes[1].name is "gpus"',
        'error: Policy default: spec.mode is "strict"',
    ]
