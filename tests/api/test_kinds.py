"""What the kinds say of themselves: defaults, and the words for widths, spares, requeue and slots."""

import msgspec
import pytest

from jobtree.api import Duration, Lease, ObjectMeta, Policy, Run, RunRef, decode, encode
from jobtree.api.kinds.core import Node, Pod
from jobtree.api.values.scalars import DAY, enc_hook
from tests.api.test_refusals_other import LEASE
from tests.support import documents as doc


def run(**spec: object) -> Run:
    found = decode("Run", doc.merge(doc.run("train", 128), {"spec": spec}))
    assert isinstance(found, Run)
    return found


def test_the_built_in_policy() -> None:
    assert decode("Policy", doc.policy()) == Policy()
    spec = Policy().spec
    assert (spec.mode, spec.accounting_period, spec.maintenance, spec.credit_rates) == (
        "enforce",
        Duration(DAY),
        (),
        {},
    )
    assert spec.stages == ("starts", "growth", "opportunistic")
    parts = {
        name: {key: msgspec.to_builtins(getattr(part, key), enc_hook=enc_hook) for key in part.__struct_fields__}
        for name in spec.__struct_fields__
        if isinstance(part := getattr(spec, name), msgspec.Struct)
    }
    assert parts == {
        "spares": {"discount": 0.5},
        "reservations": {
            "notice": "15m", "patience": "12h", "bucket": "5m", "horizon": "14d", "max_held": 200,
            "on_budget_shortfall": "wait",
        },
        "lottery": {"term": "12h"},
        "cuts": {"max_gpus_per_cycle": None},
        "elasticity": {"max_grow_steps_per_cycle": 1},
        "age": {"unit": "24h", "cap": "72h"},
        "funding": {"cross_location": "deny", "past_window": "allow"},
        "tenancy": {"require_binding": False},
        "failure": {"not_ready_after": "5m", "max_fraction": 0.2},
        "opportunistic": {"notice": "0s"},
        "pod_defaults": {
            "image": "registry.k8s.io/pause:3.10", "command": (), "args": (), "cpu": None, "memory": None,
            "tolerations": (), "slurm_env": False,
        },
        "topology": {"labels": {}},
        "solver": {"gap": 0.0001, "deadline": "45s", "seed": 1},
        "retention": {"leases": "7d", "plans": 100},
    }  # fmt: skip
    labels = spec.topology.labels
    assert (labels.region, labels.cluster, labels.domain, labels.rack, labels.flavor) == (
        "region", "cluster", "fabric.domain", "rack", "gpu.flavor",
    )  # fmt: skip
    assert spec.resource_names == ("nvidia.com/gpu", "amd.com/gpu")
    assert spec.spares.discount_milli == 500


def test_the_widths_of_a_fixed_and_of_an_elastic_run() -> None:
    elastic = run(malleable={"minTotalGPUs": 96, "maxTotalGPUs": 160, "stepGPUs": 32})
    desired = run(malleable={"minTotalGPUs": 96, "maxTotalGPUs": 160, "stepGPUs": 32, "desiredTotalGPUs": 96})
    assert [
        (each.spec.min_gpus, each.spec.total_gpus, each.spec.max_gpus, each.spec.step_gpus, each.spec.desired_gpus)
        for each in (run(), elastic, desired)
    ] == [(128, 128, 128, 0, 128), (96, 128, 160, 32, 160), (96, 128, 160, 32, 96)]


@pytest.mark.parametrize(
    ("spec", "spares", "gpus"),
    [
        ({}, 0, 1),
        ({"spares": 2}, 2, 1),
        ({"sparesPerGroup": 2}, 2, 1),
        ({"spares": 1, "resources": {"gpusPerPod": 8}}, 1, 8),
    ],
)
def test_spares_under_either_name(spec: doc.Document, spares: int, gpus: int) -> None:
    assert (run(**spec).spec.spares, run(**spec).spec.spare_gpus) == (spares, gpus)


@pytest.mark.parametrize(
    ("spec", "requeues"),
    [
        ({}, False),
        ({"runtime": {"checkpoint": "10m"}}, True),
        ({"runtime": {"checkpoint": "10m", "requeue": False}}, False),
        ({"runtime": {"requeue": True}}, True),
        ({"funding": {"opportunistic": True}}, True),
    ],
)
def test_what_waits_again_after_an_interruption(spec: doc.Document, requeues: bool) -> None:
    assert run(**spec).spec.requeues is requeues


def test_indices_of_an_array_are_runs_by_name() -> None:
    assert [RunRef(name="r").run_name, RunRef(name="r", index=0).run_name] == ["r", "r-0"]


def test_a_lease_knows_its_node_and_ordinals() -> None:
    lease = decode("Lease", LEASE)
    assert isinstance(lease, Lease)
    assert (lease.spec.node, lease.spec.ordinals) == ("n1", (0, 1))


def test_an_open_lease_says_that_it_is_open() -> None:
    lease = decode(
        "Lease", doc.merge(LEASE, {"status": {"funding": [{"class": "owned", "from": "2026-01-01T00:00:00Z"}]}})
    )
    assert isinstance(lease, Lease)
    assert encode(lease) == {
        **LEASE,
        "status": {"closed": False, "funding": [{"class": "owned", "from": "2026-01-01T00:00:00Z"}]},
    }


def test_nodes_and_pods_are_read_for_the_needed_fields_only() -> None:
    node = decode("Node", {
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "n1", "labels": {"rack": "r"}, "managedFields": [{"manager": "kubelet"}]},
        "spec": {"unschedulable": True, "podCIDR": "10.0.0.0/24",
                 "taints": [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]},
        "status": {"allocatable": {"nvidia.com/gpu": 8, "cpu": "64"}, "images": [{"names": ["x"]}],
                   "conditions": [{"type": "DiskPressure", "status": "False"},
                                  {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    })  # fmt: skip
    assert isinstance(node, Node)
    assert node.ready is not None
    assert (node.metadata.labels, node.spec.unschedulable, node.ready.status) == ({"rack": "r"}, True, "True")
    assert [taint.key for taint in node.spec.taints or ()] == ["node.kubernetes.io/out-of-service"]
    pod = decode("Pod", doc.foreign_pod("p", "n1", 6))
    assert isinstance(pod, Pod)
    assert pod.spec.containers[0].resources.limits == {"nvidia.com/gpu": "6"}
    assert decode("Node", {"metadata": {"name": "bare"}}) == Node(metadata=ObjectMeta(name="bare"))
