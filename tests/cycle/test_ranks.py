"""Width and ranks that a run's pods may read: written as its pods change, with no rank held twice."""

from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.writes.pods import _members, _Place, pod_writes
from exporters.writes.podspec import Member, manifest
from exporters.writes.ranks import LONGEST, ranks
from jobtree.api import GROUP, dec_hook
from jobtree.api.kinds.core import Pod
from jobtree.api.kinds.policy import PolicySpec
from jobtree.api.kinds.run import Run
from jobtree.cluster.protocol import Ref, Write
from jobtree.cluster.statefile import StateFile
from tests.support import documents as doc
from tests.support.effort import examples
from tests.support.times import T0, unix
from tests.support.worlds import Cycle, World

ELASTIC = {"minTotalGPUs": 8, "maxTotalGPUs": 24, "stepGPUs": 8}


def written(world: World, cycle: Cycle, at: str = T0) -> list[Write]:
    intake = StateFile(world.save(), unix(at)).read()
    assert intake.policy is not None
    found = pod_writes(intake, cycle.plan, intake.policy.spec)
    return [*found.before, *found.made, *found.after]


def told(writes: list[Write]) -> dict[str, tuple[str, list[tuple[int, str, int, str]]]]:
    """By ConfigMap, the width, and rank, host, group and node of each pod."""
    return {
        each.ref.name: (
            each.body["data"]["width"],
            [(one["rank"], one["host"].partition(".")[0], one["group"], one["node"])
             for one in msgspec.json.decode(each.body["data"]["ranks.json"])],
        )
        for each in writes if each.ref.kind == "ConfigMap"
    }  # fmt: skip


def obeyed(world: World, writes: list[Write]) -> None:
    """Pods go and come as written."""
    for write in writes:
        if write.ref.kind == "Pod" and write.verb == "delete":
            world.delete("Pod", write.ref.name)
        elif write.ref.kind == "Pod":
            uid = f"u-{write.ref.name}"
            meta = {**write.body["metadata"], "namespace": "default", "uid": uid, "creationTimestamp": T0}
            pod: dict[str, Any] = {"apiVersion": "v1", "kind": "Pod", **write.body, "metadata": meta}
            world.add({**pod, "status": {"phase": "Pending"}})


def test_what_grows_and_shrinks_says_so_each_time() -> None:
    world = World().domain("A", nodes=3).budget("org:a", 24).policy()
    world.run("r", 8, by=8, malleable=ELASTIC)
    seen = []
    for at in (T0, "+1m", "+2m", "+3m"):
        writes = written(world, world.cycle(at), at)
        seen.append(told(writes))
        obeyed(world, writes)
    world.edit("Run", "r", spec={"malleable": {"desiredTotalGPUs": 8}})
    writes = written(world, world.cycle("+4m"), "+4m")

    one, two, three = [(rank, f"r-{rank}", rank, f"a0{rank + 1}") for rank in range(3)]
    assert [*seen, told(writes)] == [
        {"run-r": ("8", [one])},
        {"run-r": ("16", [one, two])},
        {"run-r": ("24", [one, two, three])},
        {},
        {"run-r": ("8", [one])},
    ]
    assert [str(each.ref) for each in writes if each.verb == "delete"] == [
        f"Pod default/r-20260101t000{minute}00z-{minute}" for minute in (1, 2)
    ]


def test_a_swap_keeps_the_rank_and_says_the_new_node() -> None:
    world = World().domain("A", nodes=3).budget("org:a", 24).policy()
    world.run("r", 16, by=16, pods=8, spares=1, runtime={"checkpoint": "10m"})
    first = written(world, world.cycle())
    obeyed(world, first)
    (spare,) = [lease for lease in world.state().leases("r") if lease.role == "Spare"]
    lost = sorted({"a01", "a02", "a03"} - spare.nodes)[0]
    world.delete("Node", lost)
    after = told(written(world, world.cycle("+1m"), "+1m"))

    before = told(first)
    assert {name: (width, [(rank, host) for rank, host, *_ in rows]) for name, (width, rows) in after.items()} == {
        "run-r": ("16", [(0, "r-0"), (1, "r-1")])
    }
    assert {row[3] for row in after["run-r"][1]} == ({row[3] for row in before["run-r"][1]} - {lost}) | spare.nodes


def run_of(**spec: Any) -> Run:
    return msgspec.convert(
        doc.merge(doc.run("r", 24), {"metadata": {"uid": "u"}, "spec": spec}), Run, dec_hook=dec_hook
    )


def test_ranks_have_no_gap_where_a_group_in_the_middle_went() -> None:
    (write,) = ranks(run_of(malleable=ELASTIC), [Member(2, 2, "n3", 8, "c"), Member(0, 0, "n1", 4, "c")])
    assert told([write]) == {"run-r": ("12", [(0, "r-0", 0, "n1"), (1, "r-2", 2, "n3")])}
    assert write.body["data"]["hostfile"] == "r-0.run-r.default.svc slots=4\nr-2.run-r.default.svc slots=8\n"


def test_a_list_too_long_for_an_object_is_left_out() -> None:
    (write,) = ranks(run_of(spares=1), [Member(rank, rank, f"node-{rank}", 8, "c") for rank in range(20_000)])
    data = write.body["data"]
    assert (data["width"], data["pods"], data["hostfile"], data["ranks.json"]) == ("160000", "20000", "", "")
    assert LONGEST * 2 < 2**20


PLACES = st.lists(
    st.builds(_Place, st.integers(0, 4), st.sampled_from(["a", "b", "c"]), st.integers(1, 8), st.just("c")), max_size=12
)


@examples(300)
@given(places=PLACES, data=st.data())
def test_no_two_pods_have_one_rank(places: list[_Place], data: st.DataObject) -> None:
    """Whatever groups went before, and in how many pods they come back."""
    there = [each for each in places if data.draw(st.booleans())]
    held = data.draw(st.lists(st.integers(0, 20), min_size=len(there), max_size=len(there), unique=True))
    kept = [(place, pod_of(rank)) for place, rank in zip(there, held, strict=True)]
    wanted = sorted(places, key=lambda place: (place.group, place.node))
    made = _members(wanted, kept)

    assert Counter(each[1:] for each in made) == Counter(wanted) - Counter(there)
    all_ranks = [*held, *(each.rank for each in made)]
    assert len(set(all_ranks)) == len(wanted)
    if set(held) <= set(range(len(wanted))):
        assert sorted(all_ranks) == list(range(len(wanted)))


def pod_of(rank: int) -> Pod:
    metadata = {"name": f"p{rank}", "labels": {f"{GROUP}/rank": str(rank)}}
    return msgspec.convert({"metadata": metadata, "spec": {}, "status": {}}, Pod)


@pytest.mark.parametrize(
    ("spec", "read"),
    [({}, []), ({"spares": 1}, ["run-r"]), ({"malleable": ELASTIC}, ["run-r"])],
    ids=["fixed", "spares", "malleable"],
)
def test_runs_that_may_change_have_it_mounted(spec: dict[str, Any], read: list[str]) -> None:
    run = run_of(**spec)
    assert mounts(run) == {"main": ["/etc/jobtree"]}
    (volume,) = manifest(run, run.status, Member(0, 0, "n1", 8, "c"), 1, PolicySpec())["spec"]["volumes"]
    maps = [each["configMap"] for each in volume["projected"]["sources"] if "configMap" in each]
    assert maps == [{"name": name, "optional": True} for name in read]


def test_what_a_template_mounts_there_stays() -> None:
    own = [{"name": "mine", "mountPath": "/etc/jobtree"}]
    containers = [{"name": "main", "image": "i", "volumeMounts": own}, {"name": "aside", "image": "i"}]
    template = {"spec": {"containers": containers, "volumes": [{"name": "mine", "emptyDir": {}}]}}
    assert mounts(run_of(spares=1, template=template)) == {"main": ["/etc/jobtree"], "aside": ["/etc/jobtree"]}


def mounts(run: Run) -> dict[str, list[str]]:
    """Where each container has a volume; each is one of the pod's."""
    spec = manifest(run, run.status, Member(0, 0, "n1", 8, "c"), 1, PolicySpec())["spec"]
    volumes = {each["name"] for each in spec.get("volumes", ())}
    found = {each["name"]: each.get("volumeMounts", []) for each in spec["containers"]}
    assert {each["name"] for mine in found.values() for each in mine} == volumes
    return {name: [each["mountPath"] for each in mine] for name, mine in found.items() if mine}


def test_a_merge_makes_what_is_not_there_and_keeps_what_is(tmp_path: Path) -> None:
    cluster = StateFile(
        World(tmp_path / "cluster.yaml")
        .add(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "old", "namespace": "default", "labels": {"a": "b"}},
                "data": {"x": "1", "y": "1"},
            }
        )
        .save(),
        unix(T0),
    )
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"labels": {"c": "d"}}, "data": {"x": "2"}}
    writes = [Write("merge", Ref("ConfigMap", "default", name), body) for name in ("old", "new")]
    for _ in range(2):
        cluster.write(writes, cluster.read().revision)
        found = {each["metadata"]["name"]: each for each in doc.read(tmp_path / "cluster.yaml")}
        assert {name: (each["metadata"]["labels"], each["data"]) for name, each in found.items()} == {
            "old": ({"a": "b", "c": "d"}, {"x": "2", "y": "1"}),
            "new": ({"c": "d"}, {"x": "2"}),
        }
