"""The snapshot's columns, and that its digest tells worlds apart and nothing else (spec §2, §11; case P14)."""

import random
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from jobtree.api import Refusal
from jobtree.world.tables import digest
from jobtree.world.tables.schema import KEYS, TABLES
from jobtree.world.tables.snapshot import Snapshot, take
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.effort import examples
from tests.world.test_intake import budget, intake_of, run

T0 = 1767225600  # 2026-01-01T00:00:00Z
GIB = 1024**3


def snapshot_of(documents: list[Document]) -> Snapshot:
    return take(intake_of(documents))


def rows(documents: list[Document], table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = snapshot_of(documents).tables[table].to_pylist()
    return found


def lease(name: str, slots: str, **fields: Any) -> Document:
    return doc.merge(
        {
            "apiVersion": doc.API,
            "kind": "Lease",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "owner": "org:a",
                "runRef": {"name": "r"},
                "runUid": "u1",
                "runOwner": "org:a",
                "flavor": doc.FLAVOR,
                "group": 0,
                "slice": {"nodes": slots.split()},
                "interval": {"start": "2026-01-01T00:00:00Z"},
                "reason": "Start",
            },
        },
        fields,
    )


def world() -> list[Document]:
    """A little of everything, also of what is set aside."""
    return [
        *(doc.node(f"n{number}", domain=f"d{number % 2}") for number in range(4)),
        doc.node("plain", flavor=None, domain=None),
        budget("org:a", namespaces=["team-b", "team-a"], aggregateCaps=[{"name": "all", "envelopes": ["gpus"]}]),
        budget("org:a:x", parents=[]),
        budget("org:y", parents=["org:z"]),
        budget("org:z", parents=["org:y"]),
        run("r", follow={"after": ["s", "q"]}, locality={"selector": {"region": "us-west"}}),
        run("s", runtime={"checkpoint": "10m"}),
        run("broken", resources={"totalGPUs": -4}),
        lease("r-0", "n0#0 n0#1", spec={"paidBy": {"budget": "org-a", "envelope": "gpus"}}),
        lease("r-1", "n1#3 n1#2"),
        doc.foreign_pod("p", "n2", 2),
        doc.policy(mode="noCuts"),
    ]


def test_a_node_in_columns() -> None:
    node = doc.merge(
        doc.node("n1"),
        {
            "metadata": {"labels": {"rack": "r7"}},
            "spec": {
                "unschedulable": True,
                "taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}],
            },
            "status": {
                "conditions": [{"type": "Ready", "status": "Unknown", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
            },
        },
    )
    labels = {"cluster": "c1", "fabric.domain": "d1", "gpu.flavor": doc.FLAVOR, "rack": "r7", "region": "us-west"}
    assert rows([node], "nodes") == [
        {
            "name": "n1",
            "uid": None,
            "region": "us-west",
            "cluster": "c1",
            "domain": "d1",
            "rack": "r7",
            "flavor": doc.FLAVOR,
            "gpus": 8,
            "cpu_milli": 128_000,
            "memory": 2048 * GIB,
            "max_pods": 110,
            "unschedulable": True,
            "ready": False,
            "not_ready_since": T0,
            "out_of_service": True,
            "deleting": False,
            "labels": [{"key": key, "value": value} for key, value in labels.items()],
            "taints": [{"key": "node.kubernetes.io/out-of-service", "value": "", "effect": "NoExecute"}],
        }
    ]


def test_a_node_that_says_little_stays_and_is_ready() -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    (row,) = rows([node], "nodes")
    said = {column: value for column, value in row.items() if value is not None}
    assert said == {
        "name": "n",
        "gpus": 0,
        "unschedulable": False,
        "ready": True,
        "out_of_service": False,
        "deleting": False,
        "labels": [],
        "taints": [],
    }


def test_labels_and_resources_mean_what_the_policy_says() -> None:
    labels = {"topology.kubernetes.io/region": "eu", "nvidia.com/gpu.product": "H200"}
    node = doc.merge(doc.node("n"), {"metadata": {"labels": labels}, "status": {"allocatable": {"amd.com/gpu": "1"}}})
    names = {"region": "topology.kubernetes.io/region", "flavor": "nvidia.com/gpu.product"}
    (row,) = rows([node, doc.policy(topology={"labels": names}, resourceNames=["amd.com/gpu"])], "nodes")
    assert (row["region"], row["flavor"], row["cluster"], row["gpus"]) == ("eu", "H200", "c1", 1)


def test_a_run_in_columns() -> None:
    document = run(
        "r",
        locality={"groupGPUs": 8, "selector": {"region": "us-west"}},
        runtime={"checkpoint": "10m", "timeLimit": "2h"},
        malleable={"minTotalGPUs": 8, "maxTotalGPUs": 32, "stepGPUs": 8},
        spares=1,
        funding={"allowBorrow": True, "maxBorrowGPUs": 4, "sponsors": ["org:c", "org:b"]},
        follow={"after": ["b", "a"]},
        quota={"maxGPUs": 8, "maxGPUHours": 0.5},
        gang={"name": "g", "size": 2},
        template={
            "spec": {
                "nodeSelector": {"disk": "nvme"},
                "tolerations": [{"key": "gpu", "operator": "Exists"}],
                "containers": [
                    {"name": "a", "resources": {"requests": {"cpu": "1500m"}, "limits": {"cpu": "2", "memory": "1Gi"}}},
                    {"name": "b", "resources": {"requests": {"memory": "1Gi"}}},
                ],
            }
        },
    )
    document = doc.merge(
        document,
        {
            "metadata": {"uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "status": {
                "phase": "Failed",
                "timeLimit": "1h",
                "conditions": [{"type": "Failed", "status": "True", "reason": "TimeLimit"}],
            },
        },
    )
    (row,) = rows([document], "runs")
    status = row.pop("status")
    assert row == {
        "namespace": "default",
        "name": "r",
        "uid": "u1",
        "created": T0,
        "owner": "org:a",
        "state": "Active",
        "deleting": False,
        "flavor": doc.FLAVOR,
        "total": 8,
        "pod": 0,
        "cpu_pods": 0,
        "group": 8,
        "spread": True,
        "selector": [{"key": "disk", "value": "nvme"}, {"key": "region", "value": "us-west"}],
        "tolerations": [{"key": "gpu", "operator": "Exists", "value": "", "effect": ""}],
        "pod_cpu_milli": 1500,
        "pod_memory": 2 * GIB,
        "checkpoint": 600,
        "expected": None,
        "time_limit": 7200,
        "requeue": True,
        "min_total": 8,
        "max_total": 32,
        "step": 8,
        "desired": 32,
        "spares": 1,
        "allow_borrow": True,
        "max_borrow": 4,
        "sponsors": ["org:c", "org:b"],
        "opportunistic": False,
        "follow": ["a", "b"],
        "on_upstream_failure": "wait",
        "upstream_grace": 1800,
        "parent": None,
        "quota_gpus": 8,
        "quota_gpu_milliseconds": 1_800_000,
        "gang": "g",
        "gang_size": 2,
        "array": False,
        "outcome": "Failed",
        "outcome_reason": "TimeLimit",
        "completed_at": None,
        "eta": None,
        "enforced_limit": 3600,
    }
    assert status == (
        '{"conditions":[{"message":"","reason":"TimeLimit","status":"True","type":"Failed"}],"phase":"Failed","timeLimit":"1h"}'
    )


def test_what_template_and_run_ask_for_of_one_label_is_asked_for_twice() -> None:
    template = {"spec": {"nodeSelector": {"zone": "a", "region": "r"}, "containers": [{"name": "a", "image": "i"}]}}
    (row,) = rows([run("r", locality={"selector": {"zone": "b", "region": "r"}}, template=template)], "runs")
    assert row["selector"] == [
        {"key": "region", "value": "r"},
        {"key": "zone", "value": "a"},
        {"key": "zone", "value": "b"},
    ]


def test_a_run_without_a_template_has_the_policys_pod() -> None:
    pod = {"cpu": "2", "memory": "1Gi", "tolerations": [{"key": "gpu", "effect": "NoSchedule"}]}
    (row,) = rows([run("r"), doc.policy(podDefaults=pod)], "runs")
    assert {name: row[name] for name in ("selector", "tolerations", "pod_cpu_milli", "pod_memory", "status")} == {
        "selector": [],
        "tolerations": [{"key": "gpu", "operator": "Equal", "value": "", "effect": "NoSchedule"}],
        "pod_cpu_milli": 2000,
        "pod_memory": GIB,
        "status": None,
    }


def test_a_cpu_run_asks_by_the_pod() -> None:
    resources = {"gpuType": None, "totalGPUs": None, "pods": 3, "cpuPerPod": "4", "memoryPerPod": "2Gi"}
    (row,) = rows([run("r", resources=resources)], "runs")
    assert [row[name] for name in ("flavor", "total", "pod", "cpu_pods", "pod_cpu_milli", "pod_memory")] == [
        None, 0, 0, 3, 4000, 2 * GIB,
    ]  # fmt: skip


def test_a_pod_needs_the_most_that_it_needs_at_any_moment() -> None:
    def needs(cpu: str, gpus: str = "0") -> Document:
        return {"requests": {"cpu": cpu}, "limits": {"nvidia.com/gpu": gpus}}

    pod = doc.merge(
        doc.foreign_pod("p", "n1", 1),
        {
            "spec": {
                "containers": [{"resources": needs("1", "2")}, {"resources": needs("1")}],
                "initContainers": [
                    {"resources": needs("500m"), "restartPolicy": "Always"},
                    {"resources": needs("4")},
                ],
                "overhead": {"cpu": "250m"},
            }
        },
    )
    (row,) = rows([pod], "pods")
    assert (row["node"], row["run"], row["gpus"], row["cpu_milli"], row["memory"]) == ("n1", None, 2, 4750, 0)


def test_pods_that_are_over_count_only_for_their_own_run() -> None:
    def over(name: str, labels: Document) -> Document:
        pod = doc.foreign_pod(name, "n1", 1)
        return doc.merge(pod, {"metadata": {"labels": labels}, "status": {"phase": "Succeeded"}})

    found = rows([over("foreign", {}), over("own", {"rq.davidlangworthy.io/run": "r"})], "pods")
    assert [(row["name"], row["run"], row["phase"]) for row in found] == [("own", "r", "Succeeded")]


def test_budgets_envelopes_and_aggregates_in_columns() -> None:
    envelope = doc.envelope(
        8, "e", maxGPUHours=1.5, maxCredits=2, start="2026-01-01T00:00:00Z", perRun={"maxTime": "2h"},
        lending={"allow": True, "to": ["org:c", "org:b"], "maxConcurrency": 2},
    )  # fmt: skip
    cap = {"name": "cap", "envelopes": ["e"], "maxConcurrency": 4}
    documents = [doc.budget("org:a", [envelope], aggregateCaps=[cap], parents=[])]
    assert rows(documents, "budgets") == [
        {"name": "org-a", "uid": None, "created": None, "owner": "org:a", "namespaces": None, "parents": []}
    ]
    assert rows(documents, "envelopes") == [
        {
            "budget": "org-a",
            "name": "e",
            "flavor": doc.FLAVOR,
            "selector": [{"key": "region", "value": "*"}],
            "concurrency": 8,
            "max_gpu_milliseconds": 5_400_000,
            "max_millicredits": 2000,
            "start": T0,
            "end": None,
            "scope": "own",
            "sharing": "none",
            "allow_reservations": True,
            "allow_admission": False,
            "per_run_gpus": None,
            "per_run_time": 7200,
            "per_run_default_time": None,
            "lending_allow": True,
            "lending_to": ["org:b", "org:c"],
            "lending_concurrency": 2,
            "lending_gpu_milliseconds": None,
            "lending_duration": 86400,
        }
    ]
    assert rows(documents, "aggregates") == [
        {
            "budget": "org-a",
            "name": "cap",
            "flavor": None,
            "envelopes": ["e"],
            "concurrency": 4,
            "max_gpu_milliseconds": None,
            "max_millicredits": None,
        }
    ]


def test_a_lease_in_columns() -> None:
    document = lease(
        "r-0",
        "n1#3 n1#2",
        spec={"paidBy": {"budget": "b", "envelope": "e"}},
        status={
            "closed": True,
            "ended": "2026-01-01T00:00:10Z",
            "closureReason": "Completed",
            "funding": [{"class": "owned", "from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:00:10Z", "rate": 1.5}],
        },
    )
    assert rows([document], "leases") == [
        {
            "namespace": "default",
            "name": "r-0",
            "run": "r",
            "run_uid": "u1",
            "owner": "org:a",
            "run_owner": "org:a",
            "flavor": doc.FLAVOR,
            "group": 0,
            "node": "n1",
            "node_uid": None,
            "ordinals": [2, 3],
            "role": "Active",
            "start": T0,
            "budget": "b",
            "envelope": "e",
            "reason": "Start",
            "closed": True,
            "ended": T0 + 10,
            "closure_reason": "Completed",
            "funding": [{"class": "owned", "from": T0, "to": T0 + 10, "rate_milli": 1500}],
        }
    ]


def test_an_empty_world_has_every_table() -> None:
    snapshot = snapshot_of([doc.policy()])
    assert {name: (table.schema, table.num_rows) for name, table in snapshot.tables.items()} == {
        name: (schema, 0) for name, schema in TABLES.items()
    }


def test_every_table_has_its_schema_is_one_chunk_and_sorted_by_its_key() -> None:
    for name, table in snapshot_of(world()).tables.items():
        keys = [tuple(row[column] for column in KEYS[name]) for row in table.to_pylist()]
        assert keys == sorted(keys)
        assert table.schema == TABLES[name]
        assert {column.num_chunks for column in table.columns} == {1}


def test_what_was_set_aside_is_in_the_snapshot() -> None:
    found = [(row["kind"], row["namespace"], row["name"]) for row in rows(world(), "quarantine")]
    assert found == [("Budget", "", "org-y"), ("Budget", "", "org-z"), ("Run", "default", "broken")]


@examples(20)
@given(st.randoms(use_true_random=False))
def test_the_order_of_documents_and_fields_changes_nothing(chance: random.Random) -> None:
    def shuffled(value: Any) -> Any:
        if isinstance(value, dict):
            keys = list(value)
            chance.shuffle(keys)
            return {key: shuffled(value[key]) for key in keys}
        return value

    documents = world()
    chance.shuffle(documents)
    one, other = snapshot_of(world()), snapshot_of([shuffled(each) for each in documents])
    assert other.digest == one.digest
    assert all(other.tables[name].equals(one.tables[name]) for name in TABLES)
    assert other.policy_digest == one.policy_digest


def test_heartbeats_and_versions_change_nothing() -> None:
    def ticked(document: Document) -> Document:
        changed = doc.merge(document, {"metadata": {"resourceVersion": "77"}})
        for condition in changed.get("status", {}).get("conditions", []):
            condition["lastHeartbeatTime"] = "2026-01-01T00:00:00Z"
        return changed

    assert snapshot_of([ticked(each) for each in world()]).digest == snapshot_of(world()).digest


@pytest.mark.parametrize("place", range(len(world())))
def test_anything_that_is_said_changes_the_digest(place: int) -> None:
    documents = world()
    del documents[place]
    assert snapshot_of(documents).digest != snapshot_of(world()).digest


def test_a_snapshot_with_other_tables_has_a_digest_of_its_own() -> None:
    one, other = (take(intake_of([doc.node(name)])) for name in ("a", "b"))
    assert one.digest != other.digest

    assert replace(one, tables=other.tables).digest == other.digest


def test_the_policy_has_a_digest_of_its_own() -> None:
    spoken, silent = doc.policy(mode="enforce"), doc.policy()
    assert snapshot_of([spoken]).policy_digest == snapshot_of([silent]).policy_digest == snapshot_of([]).policy_digest
    assert snapshot_of([doc.policy(mode="observe")]).policy_digest != snapshot_of([silent]).policy_digest


odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=4),
    st.sampled_from(["8", "-1", "1e40", "9Ei", "10m", "9999-12-31T23:59:59Z", 10**18, 10**30, 1e300, {}, []]),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
)


def rich_world() -> list[Document]:
    """A world whose objects say nearly everything that a column is made of."""
    status = {"closed": True, "ended": "2026-01-01T00:00:10Z", "closureReason": "Failed"}
    segment = {"class": "owned", "from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:00:10Z", "rate": 1.5}
    container = {
        "name": "a",
        "image": "i",
        "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"nvidia.com/gpu": "8"}},
    }
    template = {"spec": {"containers": [container], "tolerations": [{"key": "a"}], "nodeSelector": {"a": "b"}}}
    bounds = {"maxGPUHours": 1.5, "maxCredits": 2.5, "perRun": {"maxGPUs": 2}, "lending": {"maxGPUHours": 0.5}}
    return [
        *world(),
        run("rich", quota={"maxGPUHours": 0.5}, spares=1, template=template, gang={"name": "g", "size": 2}),
        doc.budget("org:rich", [doc.envelope(8, "e", **bounds)]),
        lease("rich", "n2#0", status={**status, "funding": [segment]}),
    ]


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of everything within a document."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, part in inner for found in [(*path, key), *places(part, (*path, key))]]


@examples(60)
@given(st.data())
def test_no_single_field_of_one_object_stops_the_rest(data: st.DataObject) -> None:
    documents = rich_world()
    number = data.draw(st.integers(0, len(documents) - 1))
    path = data.draw(
        st.sampled_from([path for path in places(documents[number]) if path[0] in ("metadata", "spec", "status")])
    )
    assume(path[0] != "metadata" or (len(path) > 1 and path[1] not in ("name", "namespace")))
    place: Any = documents[number]
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = data.draw(odd)
    try:
        snapshot = snapshot_of(documents)
    except Refusal:
        assert documents[number]["kind"] == "Policy"
    else:
        assert snapshot.tables["nodes"].num_rows >= 4
        assert snapshot.digest


texts = st.one_of(st.none(), st.text(max_size=3))
columns = st.lists(
    st.fixed_dictionaries(
        {
            "coded": texts,
            "text": texts,
            "number": st.one_of(st.none(), st.integers(-3, 3)),
            "flag": st.one_of(st.none(), st.booleans()),
            "list": st.one_of(st.none(), st.lists(texts, max_size=3)),
            "structs": st.one_of(st.none(), st.lists(st.fixed_dictionaries({"a": texts, "b": texts}), max_size=2)),
        }
    ),
    max_size=6,
)
SCHEMA = pa.schema(
    [
        ("coded", pa.dictionary(pa.int32(), pa.string())),
        ("text", pa.string()),
        ("number", pa.int64()),
        ("flag", pa.bool_()),
        ("list", pa.list_(pa.string())),
        ("structs", pa.list_(pa.struct([("a", pa.string()), ("b", pa.string())]))),
    ]
)


def arrow(values: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(values, schema=SCHEMA)


@given(columns, columns)
def test_tables_have_one_digest_exactly_when_they_say_the_same(one: list[Any], other: list[Any]) -> None:
    assert (digest.of_table(arrow(one), 1) == digest.of_table(arrow(other), 1)) == (one == other)


@given(columns, columns, st.data())
def test_how_arrow_holds_a_table_changes_nothing(before: list[Any], values: list[Any], data: st.DataObject) -> None:
    whole = arrow(values)
    cut = data.draw(st.integers(0, len(values)))
    held = pa.concat_tables([arrow(values[:cut]), arrow(before + values[cut:]).slice(len(before))])
    assert digest.of_table(held, 1) == digest.of_table(whole, 1)
    decoded = whole.set_column(0, "coded", whole.column("coded").cast(pa.string()))
    assert digest.of_table(decoded, 1) == digest.of_table(whole, 1)


def test_the_schema_version_and_column_names_count() -> None:
    table = arrow([])
    assert digest.of_table(table, 1) != digest.of_table(table, 2)
    assert digest.of_table(table, 1) != digest.of_table(table.rename_columns([*SCHEMA.names[:-1], "other"]), 1)
