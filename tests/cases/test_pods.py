# ruff: noqa: N802 -- test names are case ids
"""A pod speaks only for the life that it served (spec §7, §10): N1 to N4, N11."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtree.api import Policy
from jobtree.world.reading.intake import intake, key_of
from jobtree.world.tables import rows_runs
from jobtree.world.tables.schema import TABLES
from policies.inputs import pods as rule
from policies.inputs.claims import LeaseRow
from policies.inputs.runs import RunRow, read_runs
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.times import moment
from tests.support.worlds import Cycle, World

RUN = "rq.davidlangworthy.io/run"


def own(run: str, name: str, on: str | None, phase: str, at: str | None = None, gpus: int = 0, **more: Any) -> Document:
    """A pod with a run's label, begun ``at`` where that is told."""
    meta = {"name": name, "namespace": "default", "labels": {RUN: run}, **more}
    begun = {"startTime": moment(at)} if at else {}
    pod = doc.merge(doc.foreign_pod(name, "n", gpus), {"metadata": meta, "status": {"phase": phase, **begun}})
    return doc.merge(pod, {"spec": {"nodeName": on}})


def controlled(uid: str) -> Document:
    return {"ownerReferences": [{"apiVersion": "v1", "kind": "Run", "name": "r", "uid": uid, "controller": True}]}


def checkpointed(nodes: int = 2, **fields: Any) -> World:
    """Run r of 8, which can begin again, runs on a01 since T0."""
    world = World().domain("A", nodes=nodes).budget("org:a", 64).run("r", 8, runtime={"checkpoint": "10m"}, **fields)
    (lease,) = world.cycle().leases("r")
    assert lease.nodes == {"a01"}
    return world


def ends(cycle: Cycle, run: str = "r") -> list[str | None]:
    return [lease.closure for lease in cycle.leases(run)]


def test_N1_a_pod_of_a_life_that_is_over_decides_nothing() -> None:
    world = checkpointed().delete("Node", "a01")
    assert world.cycle("+1h").running == ["r"]
    cycle = world.add(own("r", "old", "a01", "Failed", "+1m")).cycle("+2h")

    assert cycle.running == ["r"]
    assert sorted(map(str, ends(cycle))) == ["NodeFailure", "None"]


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
def test_N1_nor_does_one_on_the_very_node_that_it_is_back_on(phase: str) -> None:
    world = checkpointed(1).delete("Node", "a01")
    assert world.add(own("r", "old", "a01", phase, "+1m")).cycle("+1h").phases == {
        "r": "Pending" if phase == "Failed" else "Completed"
    }
    world.node("a01", domain="A")

    assert world.cycle("+2h").phases == {"r": "Running" if phase == "Failed" else "Completed"}
    assert world.cycle("+3h").phases == {"r": "Running" if phase == "Failed" else "Completed"}


def test_N1_a_pod_that_tells_no_time_begun_when_it_was_seen_first() -> None:
    world = checkpointed(1).add(own("r", "old", "a01", "Failed")).delete("Node", "a01")
    assert world.cycle("+1h").phases == {"r": "Pending"}
    world.node("a01", domain="A")

    assert [world.cycle(at).phases["r"] for at in ("+2h", "+3h")] == ["Running", "Running"]


def test_N1_the_gpus_that_it_still_uses_are_not_those_of_the_lease() -> None:
    """Suspended and resumed, r is back on a01, where its old pod still runs: all 8 GPUs are taken."""
    world = World().node("a01", 8).budget("org:a", 64).run("r", 4)
    assert world.cycle().running == ["r"]
    world.runs("suspend", "r", at="+1h").ok()
    assert world.add(own("r", "old", "a01", "Running", "+1m", gpus=4)).cycle("+1h").phases == {"r": "Pending"}
    world.runs("resume", "r", at="+2h").ok()
    assert world.cycle("+2h").running == ["r"]
    assert world.run("more", 4, created="+2h").cycle("+3h").running == ["r"]
    assert world.delete("Pod", "old").cycle("+4h").running == ["more", "r"]


def test_N2_a_pod_that_failed_with_its_node_did_not_fail_by_itself() -> None:
    pod = own("r", "r-0", "a01", "Failed", "+1m")
    said = {"reason": "NodeShutdown", "conditions": [{"type": "DisruptionTarget", "status": "True"}]}
    cycle = checkpointed().delete("Node", "a01").add(doc.merge(pod, {"status": said})).cycle("+1h")

    assert cycle.running == ["r"]
    assert sorted(map(str, ends(cycle))) == ["NodeFailure", "None"]


def test_N2_nor_did_one_elsewhere_whose_mate_lost_its_node() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 64)
    assert world.run("r", 16, pods=8, runtime={"checkpoint": "10m"}).cycle().running == ["r"]
    cycle = world.delete("Node", "a01").add(own("r", "r-1", "a02", "Failed", "+1m")).cycle("+1h")

    assert cycle.phases == {"r": "Pending"}
    assert ends(cycle) == ["NodeFailure", "NodeFailure"]


@pytest.mark.parametrize(("succeeded", "phase"), [(1, "Running"), (2, "Completed")])
def test_N3_all_pods_are_those_that_the_run_has(succeeded: int, phase: str) -> None:
    world = World().node("a01").budget("org:a", 8).run("r", 8, pods=4)
    assert world.cycle().running == ["r"]
    for number in range(succeeded):
        world.add(own("r", f"r-{number}", "a01", "Succeeded", "+1m"))

    assert world.cycle("+1h").phases == {"r": phase}


def test_N3_two_documents_of_one_node_do_not_stand_for_the_pod_of_another() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 64).run("r", 16)
    assert world.cycle().running == ["r"]
    for number in range(2):
        world.add(own("r", f"r-{number}", "a01", "Succeeded", "+1m"))
    assert world.cycle("+1h").running == ["r"]

    assert world.add(own("r", "r-2", "a02", "Succeeded", "+1m")).cycle("+2h").phases == {"r": "Completed"}


def test_N3_spares_have_no_pods_and_a_run_without_gpus_has_as_many_as_it_asks_for() -> None:
    cpus = {"gpuType": None, "totalGPUs": None, "pods": 2, "cpuPerPod": "1", "memoryPerPod": "1Gi"}
    world = (
        World().domain("A", nodes=2).budget("org:a", 64).run("gpu", 8, pods=8, spares=1).run("cpu", 1, resources=cpus)
    )
    cycle = world.cycle()
    assert cycle.running == ["cpu", "gpu"]
    (on,) = next(lease.nodes for lease in cycle.leases("gpu") if lease.role == "Active")
    world.add(own("gpu", "g", on, "Succeeded", "+1m"), own("cpu", "c-0", "a01", "Succeeded", "+1m"))
    assert world.cycle("+1h").phases == {"gpu": "Completed", "cpu": "Running"}

    assert world.add(own("cpu", "c-1", "a02", "Succeeded", "+1m")).cycle("+2h").phases["cpu"] == "Completed"


@pytest.mark.parametrize("phase", ["Failed", "Succeeded", "Running"])
def test_N4_a_pod_that_another_controls_is_foreign(phase: str) -> None:
    world = World().node("a01").budget("org:a", 8).run("r", 4)
    assert world.cycle().running == ["r"]
    world.add(own("r", "theirs", "a01", phase, "+1m", gpus=4, **controlled("somebody")))
    cycle = world.run("late", 4, created="+1m").cycle("+1h")

    assert cycle.running == (["r"] if phase == "Running" else ["late", "r"])


def test_N4_one_that_this_very_run_controls_is_its_own() -> None:
    world = World().node("a01").budget("org:a", 8).run("r", 4)
    uid = world.cycle().get("Run", "r")["metadata"]["uid"]

    assert world.add(own("r", "r-0", "a01", "Failed", "+1m", **controlled(uid))).cycle("+1h").phases == {"r": "Failed"}


@pytest.mark.parametrize("uids", [("one", "two"), (None, "two"), (None, None)])
def test_N11_a_node_is_its_uid(uids: tuple[str | None, str | None]) -> None:
    def node(world: World, uid: str | None) -> World:
        return world.add(doc.merge(doc.node("a01", domain="A"), {"metadata": {"uid": uid}}))

    world = node(World().budget("org:a", 8), uids[0]).run("r", 8, runtime={"checkpoint": "10m"})
    before = world.cycle()
    told = before.get("Lease", before.all("Lease")[0]["metadata"]["name"])["spec"]["slice"]["nodeUid"]
    assert told == before.get("Node", "a01")["metadata"]["uid"]
    cycle = node(world.delete("Node", "a01"), uids[1]).cycle("+1h")

    assert cycle.running == ["r"]
    assert sorted(map(str, ends(cycle))) == ["NodeFailure", "None"]
    assert cycle.get("Node", "a01")["metadata"]["uid"] != told


def test_N11_a_node_that_stays_is_not_made_again() -> None:
    world = checkpointed(1).edit("Node", "a01", metadata={"labels": {"rack": "r7"}}, spec={"unschedulable": True})

    assert ends(world.cycle("+1h")) == [None]


# --- by the rule read slowly

PODS = st.lists(
    st.tuples(
        st.sampled_from([None, "n0", "n1", "n2"]),
        st.sampled_from([None, 1, 5, 9]),
        st.sampled_from(["Succeeded", "Failed", "Running"]),
        st.sampled_from(["", "uid", "other"]),
    ),
    max_size=5,
)
LEASES = st.lists(
    st.tuples(
        st.sampled_from(["n0", "n1"]), st.integers(0, 1), st.integers(1, 3), st.sampled_from([3, 5]), st.booleans()
    ),
    max_size=4,
)


def lease(name: str, node: str, group: int, pods: int, start: int, active: bool, pod: int) -> LeaseRow:
    return LeaseRow(
        namespace="d", name=name, run="r", run_uid="uid", owner="o", run_owner="o", flavor="f", group=group, node=node,
        node_uid="", ordinals=tuple(range(pods * (pod or 1))), active=active, start=start, budget="", envelope_name="",
        envelope=-1, closed=False, ended=None, segments=(),
    )  # fmt: skip


def row(pod: int) -> RunRow:
    """The row of run r; of what it holds its leases tell."""
    metadata = {"uid": "uid", "namespace": "d"}
    made = doc.merge(doc.run("r", 8), {"spec": {"resources": {"gpusPerPod": pod or None}}, "metadata": metadata})
    key = key_of(made["apiVersion"], "Run", "d", "r")
    found = intake([(key, msgspec.json.encode(made))], "one")
    (only,) = read_runs(rows_runs.runs(found.runs, Policy().spec), TABLES["arrays"].empty_table())
    return only


RUNS = {pod: row(pod) for pod in (0, 2)}


@given(PODS, LEASES, st.sampled_from([0, 2]))
def test_pods_of_many_lives_are_read_as_slowly_counted(
    told: list[tuple[str | None, int | None, str, str]], held: list[tuple[str, int, int, int, bool]], pod: int
) -> None:
    leases = [lease(str(i), *each, pod=pod) for i, each in enumerate(held)]
    given_pods = [
        rule.PodRow("d", node or "", "r", controller, begun, phase, False, None, False, "", 1, 0, 0)
        for node, begun, phase, controller in told
    ]
    run = RUNS[pod]
    lives, serving = rule.serving(given_pods, {run.key: run}, {run.key: leases})
    found = lives[run.key].report(serving[run.key], whole=True) if run.key in serving else None

    speak = [
        (node, phase)
        for node, begun, phase, controller in told
        if controller != "other"
        and any(x.active and node in (None, x.node) and (begun is None or begun >= x.start) for x in leases)
    ]
    wanted: Counter[str] = Counter()
    for place in {(x.node, x.group) for x in leases if x.active}:
        gpus = sum(x.gpus for x in leases if x.active and (x.node, x.group) == place)
        wanted[place[0]] += -(-gpus // pod) if pod else 1
    bound = Counter(node for node, phase in speak if node is not None)
    loose = len(speak) - bound.total()
    whole = bool(speak) and {phase for _, phase in speak} == {"Succeeded"} and (wanted - bound).total() <= loose
    failed = sum(phase == "Failed" for _, phase in speak)
    expected = rule.Report(failed, max(len(speak), wanted.total()), whole) if speak else None
    assert found == expected


def condition(kind: str, status: str, at: str, **more: str) -> Document:
    return {"conditions": [{"type": kind, "status": status, "lastTransitionTime": moment(at), **more}]}


def placeless(at: str) -> Document:
    pod = own("r", "r-0", None, "Pending", at)
    return doc.merge(pod, {"status": condition("PodScheduled", "False", at, message="0/2 nodes are available.")})


@pytest.mark.parametrize(("requeue", "phase"), [(True, "Running"), (False, "Failed")])
def test_a_gang_whose_pod_finds_no_node_for_10_minutes_gives_up_its_leases(requeue: bool, phase: str) -> None:
    world = World().domain("A", nodes=2).budget("org:a", 8).run("r", 8, runtime={"requeue": requeue})
    world.cycle()
    world.add(placeless("+1m"))

    assert ends(world.cycle("+10m")) == [None]
    cycle = world.cycle("+11m")

    assert cycle.phases == {"r": phase}
    assert sorted(map(str, ends(cycle))) == ["Failed", *(["None"] if requeue else [])]
    if not requeue:
        assert cycle.condition("r", "Failed")["message"] == "No node for a pod for 10m: 0/2 nodes are available."


def test_an_evicted_pod_has_not_failed_by_itself() -> None:
    pod = doc.merge(
        own("r", "r-0", "a01", "Failed", "+1m"),
        {"status": condition("DisruptionTarget", "True", "+2m", message="Eviction API: evicting")},
    )
    cycle = checkpointed().add(pod).cycle("+3m")

    assert sorted(map(str, ends(cycle))) == ["Failed", "None"]
    assert cycle.phases == {"r": "Running"}


def test_a_pod_that_is_deleted_by_a_hand_says_nothing() -> None:
    pod = own("r", "r-0", "a01", "Failed", "+1m", deletionTimestamp=moment("+2m"))
    assert ends(checkpointed().add(pod).cycle("+3m")) == [None]


def test_slots_of_pods_that_are_still_there_are_not_given_away() -> None:
    world = World().domain("A", nodes=1).budget("org:a", 16).run("old", 8)
    world.cycle()
    world.add(own("old", "old-0", "a01", "Running", "+1m", gpus=8)).run("new", 8)
    world.edit("Run", "old", spec={"state": "Cancelled"})

    assert world.cycle("+2m").phases == {"old": "Failed", "new": "Pending"}
    assert world.delete("Pod", "old-0").cycle("+3m").phases == {"old": "Failed", "new": "Running"}
