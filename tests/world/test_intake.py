"""What is taken in, and what is set aside with which sentence (spec §2; cases P12, L8)."""

from typing import Any

import msgspec
import pytest

from jobtree.api import GROUP, Refusal
from jobtree.world.memory.balances import Part
from jobtree.world.reading.intake import Intake, Key, Known, Notice, intake, key_of
from jobtree.world.tables.snapshot import take
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.worlds import World

LEFT_OUT = "allowed is to leave it out:"
PER_POD = "allowed is spec.resources.gpusPerPod, 8"
CPU: Document = {"pods": 1, "cpuPerPod": "1", "memoryPerPod": "1Gi"}
NO_POLICY = Notice("Policy", "", "default", "there is none: the built-in defaults hold")


def pairs(documents: list[Document]) -> list[tuple[Key, bytes]]:
    """Documents as a cluster would hand them over."""
    found = []
    for each in documents:
        metadata = each["metadata"]
        key = key_of(each.get("apiVersion", ""), each["kind"], metadata.get("namespace", ""), metadata["name"])
        found.append((key, msgspec.json.encode(each)))
    return found


def intake_of(documents: list[Document]) -> Intake:
    """The intake of documents."""
    return intake(pairs(documents), "r1")


def run(name: str, **spec: Any) -> Document:
    return doc.merge(doc.run(name, 8), {"spec": spec})


def budget(owner: str, **spec: Any) -> Document:
    return doc.merge(doc.budget(owner, [doc.envelope(8)]), {"spec": spec})


def quarantined(documents: list[Document]) -> dict[str, str]:
    return {f"{each.kind} {each.name}": each.message for each in intake_of(documents).quarantined}


def test_objects_of_a_sound_world_are_all_used_and_sorted() -> None:
    found = intake_of(
        [run("b"), run("a"), doc.node("n2"), doc.node("n1"), budget("org:a"), doc.foreign_pod("p", "n1", 2)]
    )
    assert [each.name for each in found.runs] == ["a", "b"]
    assert [each.metadata.name for each in found.nodes] == ["n1", "n2"]
    assert (len(found.budgets), len(found.pods), found.policy) == (1, 1, None)
    assert (found.revision, found.quarantined, found.warnings) == ("r1", (), (NO_POLICY,))


def test_what_is_broken_is_named_and_the_rest_is_used() -> None:
    world = [
        doc.node("good"),
        doc.merge(doc.node("bad"), {"status": {"allocatable": {"nvidia.com/gpu": "eight"}}}),
        run("good"),
        run("zero", resources={"totalGPUs": 0}),
        run("typo", malleabel={}),
        doc.merge(
            run("template"),
            {"spec": {"template": {"spec": {"containers": [{"resources": {"requests": {"cpu": "much"}}}]}}}},
        ),
    ]
    assert quarantined(world) == {
        "Node bad": 'allocatable nvidia.com/gpu is "eight"; allowed is a quantity such as 4, 500m or 2Gi',
        "Run zero": "spec.resources.totalGPUs is 0; allowed is a whole number from 1 to 1000000",
        "Run typo": "spec.malleabel is not a field of Run; did you mean malleable?",
        "Run template": "spec.template.spec.containers[0].resources.requests.cpu"
        ' is "much"; allowed is a quantity such as 4, 500m or 2Gi',
    }
    found = intake_of(world)
    assert ([each.metadata.name for each in found.nodes], [each.name for each in found.runs]) == (["good"], ["good"])


def test_every_member_of_a_cycle_is_set_aside_and_only_those() -> None:
    follow = {
        name: run(name, follow={"after": after.split()}) for name, after in {"a": "b", "b": "a", "c": "b"}.items()
    }
    parents = [
        budget("org:x", parents=["org:y"]),
        budget("org:y", parents=["org:x"]),
        budget("org:z", parents=["org:y"]),
    ]
    cycle = "spec.follow.after makes a cycle: a → b → a; allowed is follow without a cycle"
    ring = "spec.parents makes a cycle: org:x → org:y → org:x; allowed is parents without a cycle"
    assert quarantined([*follow.values(), *parents]) == {
        "Run a": cycle,
        "Run b": cycle,
        "Budget org-x": ring,
        "Budget org-y": ring,
    }


def test_a_cycle_that_shows_only_when_a_broken_budget_is_gone_is_found_too() -> None:
    # org:a:b:c descends from org:a:b; without that one, from org:a, which descends from org:a:b:c.
    world = [
        budget("org:a", parents=["org:a:b:c"]),
        budget("org:a:b", parents=["org:q"]),
        budget("org:q", parents=["org:a:b"]),
        budget("org:a:b:c"),
    ]
    assert set(quarantined(world)) == {"Budget org-a", "Budget org-a-b", "Budget org-q", "Budget org-a-b-c"}


def test_a_run_from_a_namespace_that_may_not_charge_is_not_broken() -> None:
    assert quarantined([budget("org:a", namespaces=["team-a"]), run("r")]) == {}


def test_kinds_and_versions_that_the_group_does_not_have_are_named() -> None:
    world = [doc.merge(run("a"), {"kind": "Runs"}), doc.merge(run("b"), {"apiVersion": f"{doc.API}beta1"})]
    assert quarantined(world) == {
        "Runs a": f"Runs is not a kind of {GROUP}; allowed are Budget, Lease, Plan, Policy, Reservation, Run",
        "Run b": 'apiVersion is "rq.davidlangworthy.io/v1beta1"; allowed is rq.davidlangworthy.io/v1',
    }


def without_version(document: Document) -> Document:
    return {key: value for key, value in document.items() if key != "apiVersion"}


@pytest.mark.parametrize(
    ("document", "sentence"),
    [
        (without_version(run("x")), "apiVersion is missing; allowed is rq.davidlangworthy.io/v1"),
        (run("x") | {"apiVersion": "v1"}, 'apiVersion is "v1"; allowed is rq.davidlangworthy.io/v1'),
        (run("x") | {"apiVersion": GROUP}, f'apiVersion is "{GROUP}"; allowed is {GROUP}/v1'),
        (without_version(run("x") | {"kind": "run"}), "apiVersion is missing; allowed is rq.davidlangworthy.io/v1"),
        (without_version(budget("x")), "apiVersion is missing; allowed is rq.davidlangworthy.io/v1"),
        (doc.node("x") | {"kind": "node"}, 'kind is "node"; allowed is Node'),
        (doc.foreign_pod("x", "n", 1) | {"kind": "POD"}, 'kind is "POD"; allowed is Pod'),
    ],
)
def test_what_is_meant_for_us_and_says_so_wrongly_is_named(document: Document, sentence: str) -> None:
    found = intake_of([document, run("good")])
    assert {each.kind: each.message for each in found.quarantined} == {document["kind"]: sentence}
    assert [each.name for each in found.runs] == ["good"]


@pytest.mark.parametrize(
    ("kind", "version", "sentence"),
    [
        ("Policy", "v1", r'apiVersion is "v1"; allowed is'),
        ("Policy", "", "apiVersion is missing; allowed is"),
        ("policy", doc.API, "policy is not a kind of"),
    ],
)
def test_a_policy_that_is_not_read_for_its_head_stops_everything_too(kind: str, version: str, sentence: str) -> None:
    policy = {"apiVersion": version, "kind": kind, "metadata": {"name": "default"}, "spec": {"mode": "observe"}}
    with pytest.raises(Refusal, match=rf"^{kind} default: {sentence}"):
        intake_of([policy])


def test_a_node_that_no_lease_could_name_is_left_out_and_stops_nobody() -> None:
    world = World().node("n#1", 8).node("n2", 8).budget("org:a", 8).run("r", 8)
    done = world.cycle()

    said = {each.object: each.message for each in done.plan.warnings}
    assert done.running == ["r"]
    assert said["Node n#1"] == (
        'metadata.name is "n#1"; allowed is a name of lower-case letters, digits, - and ., such as rai-h100'
    )


def test_a_node_claims_at_most_as_many_gpus_as_a_lease_can_name() -> None:
    def node(name: str, gpus: int) -> Document:
        return doc.merge(doc.node(name), {"status": {"allocatable": {"nvidia.com/gpu": str(gpus)}}})

    world = [node("most", 1000), node("more", 1001), node("absurd", 10**9)]
    assert quarantined(world) == {
        "Node more": "allocatable nvidia.com/gpu is 1001; allowed is at most 1000 GPUs on one node",
        "Node absurd": "allocatable nvidia.com/gpu is 1000000000; allowed is at most 1000 GPUs on one node",
    }
    policy = doc.merge(doc.policy(), {"spec": {"resourceNames": ["nvidia.com/gpu", "amd.com/gpu"]}})
    both = doc.merge(node("both", 600), {"status": {"allocatable": {"amd.com/gpu": "600"}}})
    assert quarantined([policy, both]) == {
        "Node both": "allocatable nvidia.com/gpu and amd.com/gpu is 1200; allowed is at most 1000 GPUs on one node"
    }


@pytest.mark.parametrize(
    ("resources", "part", "amounts", "problem"),
    [
        (CPU, "containers", {"x.org/gpu": 8}, "[x.org/gpu] is 8; allowed is no GPUs, as in a run with pods of CPU"),
        (CPU, "containers", {"x.org/gpu.shared": 8}, f"[x.org/gpu.shared] is 8; {LEFT_OUT} GPUs of a run are whole"),
        ({}, "initContainers", {"x.org/gpu": 8}, f"[x.org/gpu] is 8; {LEFT_OUT} the GPUs are those of the containers"),
        ({"gpusPerPod": 8}, "containers", {"x.org/gpu": 16}, f"[x.org/gpu] is 16; {PER_POD}"),
        ({"gpusPerPod": 8}, "containers", {"x.org/gpu": 8}, ""),
        (CPU, "containers", {"y.org/gpu": 8}, ""),
    ],
)  # fmt: skip
def test_gpus_are_what_the_policy_calls_so_in_templates_too(
    resources: Document, part: str, amounts: Document, problem: str
) -> None:
    asking = {"containers": [{"name": "main"}], part: [{"name": "main", "resources": {"limits": amounts}}]}
    made = run("r", resources=resources, template={"spec": asking})
    if resources is CPU:
        made["spec"]["resources"] = CPU
    world = [doc.policy(resourceNames=["nvidia.com/gpu", "x.org/gpu"]), made]
    said = f"spec.template.spec.{part}[0].resources.limits{problem}"
    assert quarantined(world) == ({"Run r": said} if problem else {})


def test_what_is_known_is_taken_only_while_document_and_resource_names_are_the_same() -> None:
    known = Known()

    def again(gpus: str, *names: str) -> Intake:
        node = doc.merge(doc.node("n"), {"status": {"allocatable": {"nvidia.com/gpu": gpus, "other/gpu": "many"}}})
        world = [doc.policy(resourceNames=list(names)), node, run("r", funding={"maxBorrowGPUs": 1})]
        found = intake(pairs(world), "r1", known)
        assert found == intake_of(world)
        return found

    first, same = (again("8", "nvidia.com/gpu") for _ in range(2))
    assert [one is other for one, other in zip(first.nodes, same.nodes, strict=True)] == [True]
    assert (first.runs[0] is same.runs[0], len(same.warnings)) == (True, 1)
    assert again("4", "nvidia.com/gpu").nodes[0].status.allocatable["nvidia.com/gpu"] == "4"
    assert len(again("4", "nvidia.com/gpu", "other/gpu").quarantined) == 1


def test_a_sign_of_life_changes_nothing_and_all_that_follows_is_taken_from_before() -> None:
    known = Known()

    def world(heard: str, cpu: str = "128") -> list[Document]:
        said = {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": heard}]}
        node = doc.merge(doc.node("n"), {"metadata": {"resourceVersion": heard}, "status": said})
        return [doc.merge(node, {"status": {"allocatable": {"cpu": cpu}}}), run("r"), budget("org:a")]

    worlds = [world("10:00"), world("10:05"), world("10:05", "64")]
    first, alive, changed = found = [take(intake(pairs(each), "r1", known)).tables for each in worlds]

    same = [[name for name in ("nodes", "runs") if each[name] is first[name]] for each in (alive, changed)]
    assert same == [["nodes", "runs"], ["runs"]]
    assert found == [take(intake_of(each)).tables for each in worlds]


def test_objects_of_other_groups_are_passed_over_whatever_they_say() -> None:
    other = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "x"}, "spec": {"a": 1}}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "jobtree-lottery"}, "data": {}}
    found = intake_of([other, secret])
    assert (found.leases, found.quarantined) == ((), ())


def test_a_broken_policy_stops_everything() -> None:
    with pytest.raises(Refusal, match=r"^Policy default: spec\.mode is \"off\"; allowed is "):
        intake_of([doc.node("n"), doc.policy(mode="off")])


def test_a_policy_of_another_name_is_not_read() -> None:
    extra = doc.merge(doc.policy(mode="off"), {"metadata": {"name": "other"}})
    found = intake_of([doc.policy(mode="noCuts"), extra])
    assert found.policy is not None
    assert found.policy.spec.mode == "noCuts"
    message = "only the Policy named default is read; rename this one or remove it"
    assert (found.quarantined, found.warnings) == ((Notice("Policy", "", "other", message),), ())


def test_resources_are_read_as_the_policy_names_them() -> None:
    node = doc.merge(doc.node("n"), {"status": {"allocatable": {"nvidia.com/gpu": "many", "example.com/gpu": "2"}}})
    assert quarantined([node, doc.policy(resourceNames=["example.com/gpu"])]) == {}


@pytest.mark.parametrize("memory", ["1e30", "9999999Ei"])
def test_amounts_that_no_machine_has_are_broken_too(memory: str) -> None:
    node = doc.merge(doc.node("n"), {"status": {"allocatable": {"memory": memory}}})
    assert quarantined([node]) == {"Node n": f'allocatable memory is "{memory}"; allowed is at most 1Pi'}


def test_config_maps_of_the_planner_are_read_and_others_are_not() -> None:
    maps: list[Document] = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "jobtree-system"},
            "data": data,
        }
        for name, data in {
            "jobtree-balances": {"accounts": "[]"},
            "jobtree-balances-1": {"accounts": "[]"},
            "jobtree-balances-one": {},
            "jobtree-budgets": {"a": "1"},
            "jobtree-lottery": {"b": 2},
            "kube-root-ca": {},
        }.items()
    ]
    found = intake_of(maps)
    assert [(each.namespace, each.name, each.data) for each in found.config_maps] == [
        ("jobtree-system", "jobtree-balances", {"accounts": "[]"}),
        ("jobtree-system", "jobtree-balances-1", {"accounts": "[]"}),
        ("jobtree-system", "jobtree-budgets", {"a": "1"}),
    ]
    assert [each.name for each in found.quarantined] == ["jobtree-lottery"]
    assert found.balances == {0: Part(), 1: Part()}
    assert found.balances is found.balances, "decoded once"


def test_what_a_program_reports_wrongly_does_not_stop_its_run() -> None:
    reported = doc.merge(run("r"), {"metadata": {"annotations": {"rq.davidlangworthy.io/eta": "soon"}}})
    found = intake_of([reported, doc.policy()])
    message = "its annotation rq.davidlangworthy.io/eta is 'soon' and is left out; allowed is a time"
    assert ([each.name for each in found.runs], found.warnings) == (["r"], (Notice("Run", "default", "r", message),))


def test_warnings_name_the_object_once() -> None:
    found = intake_of([run("r", funding={"sponsors": ["org:b"]}), doc.policy()])
    (warning,) = found.warnings
    assert warning[:3] == ("Run", "default", "r")
    assert "default/r" not in warning.message
