"""What an ordinary user of one namespace tries against the others: each is refused by a real API server.

alice is admin of team-a, by Kubernetes' own role, the most that a tenant can be; bob is a researcher of team-b.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from jobtree.api import API_VERSION, GROUP, LABEL_RUN
from tests.kube.access import MERGE, SYSTEM, Guarded, Person, gpu_pod, guarded
from tests.kube.bench.kube import Kube, Object
from tests.kube.live import Live, api, budget, open_leases, run
from tests.support.commands import kubectl_runs

RQ = f"/apis/{API_VERSION}"
PODS = "/api/v1/namespaces/team-a/pods"
STRATEGIC = "application/strategic-merge-patch+json"


@pytest.fixture(scope="module")
def guard(kube_session: Kube) -> Iterator[Guarded]:
    with guarded(kube_session) as made:
        yield made


@pytest.fixture
def world(guard: Guarded, kube: Kube, tmp_path: Path) -> Live:
    """A run of team-a and one of team-b, each on its own node, planned by the planner's account."""
    live = Live(kube, tmp_path / "lake", token=guard.planner)
    kube.nodes(3)
    bound = [("a", "team-a"), ("b", "team-b")]
    kube.create(*({**budget(f"org:{name}", 8), "spec": {**budget(f"org:{name}", 8)["spec"], "namespaces": [where]}}
                  for name, where in bound))  # fmt: skip
    kube.create(*(of(where, f"r{name}", owner=f"org:{name}") for name, where in bound))
    live.cycle()
    assert live.phases() == {"ra": "Running", "rb": "Running"}
    kube.until(lambda: [each["status"]["phase"] for each in kube.objects("v1", "Pod")] == ["Running"] * 2)
    return live


def of(namespace: str, name: str, gpus: int = 8, **fields: Any) -> Object:
    """A Run in a namespace, whose pods end at once when they are told."""
    made = run(name, gpus, annotations={}, **fields)
    return {**made, "metadata": {"name": name, "namespace": namespace}}


def lease(**fields: Any) -> Object:
    """A Lease of a run of team-a as a forger would write it."""
    spec = {
        "owner": "org:b", "runRef": {"name": "ra"}, "runUid": "u", "runOwner": "org:a", "flavor": "H100-80GB",
        "group": 0, "slice": {"nodes": ["n3#0"], "role": "Active"}, "interval": {"start": "2026-01-01T00:00:00Z"},
        "paidBy": {"budget": "org-b", "envelope": "pool"}, "reason": "Start", "cycle": "20260101T000000Z", **fields,
    }  # fmt: skip
    return {"apiVersion": API_VERSION, "kind": "Lease", "metadata": {"name": "forged"}, "spec": spec}


def configmap(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {}}


FORBIDDEN: dict[str, tuple[str, str, Any]] = {
    "read another's secrets": ("GET", "/api/v1/namespaces/team-b/secrets", None),
    "read the lottery's origin": ("GET", f"/api/v1/namespaces/{SYSTEM}/secrets/jobtree-lottery", None),
    "list the planner's secrets": ("GET", f"/api/v1/namespaces/{SYSTEM}/secrets", None),
    "delete the lottery's origin": ("DELETE", f"/api/v1/namespaces/{SYSTEM}/secrets/jobtree-lottery", None),
    "make a lottery's origin": (
        "POST", f"/api/v1/namespaces/{SYSTEM}/secrets",
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "jobtree-lottery"}},
    ),
    "spoil the lottery's record": (
        "PATCH", f"/api/v1/namespaces/{SYSTEM}/configmaps/jobtree-lottery", {"data": {"position": "0"}},
    ),
    "edit what the planner has seen": (
        "PATCH", f"/api/v1/namespaces/{SYSTEM}/configmaps/jobtree-budgets", {"data": {"digest": "0"}},
    ),
    "forge balances": ("POST", f"/api/v1/namespaces/{SYSTEM}/configmaps", configmap("jobtree-balances")),
    "delete balances": ("DELETE", f"/api/v1/namespaces/{SYSTEM}/configmaps/jobtree-balances", None),
    "take the planner's lock": (
        "PATCH", f"/apis/coordination.k8s.io/v1/namespaces/{SYSTEM}/leases/jobtree-planner", {"spec": {}},
    ),
    "become the planner": (
        "POST", f"/api/v1/namespaces/{SYSTEM}/serviceaccounts/jobtree/token",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": []}},
    ),
    "run a pod as the planner": ("POST", f"/api/v1/namespaces/{SYSTEM}/pods", gpu_pod(gpus=0)),
    "forge a lease": ("POST", f"{RQ}/namespaces/team-a/gpuleases", lease()),
    "forge a lease with its ledger": ("POST", f"/apis/{GROUP}/v1whole/namespaces/team-a/gpuleases", lease()),
    "close a lease": ("PATCH", f"{RQ}/namespaces/team-a/gpuleases/x/status", {"status": {"closed": True}}),
    "free a lease of its finalizer": (
        "PATCH", f"{RQ}/namespaces/team-a/gpuleases/x", {"metadata": {"finalizers": None}},
    ),
    "delete a lease": ("DELETE", f"{RQ}/namespaces/team-a/gpuleases/x", None),
    "forge a run's status": ("PATCH", f"{RQ}/namespaces/team-a/runs/ra/status", {"status": {"phase": "Completed"}}),
    "forge a promise": ("POST", f"{RQ}/namespaces/team-a/reservations", {}),
    "move a promise": ("PATCH", f"{RQ}/namespaces/team-a/reservations/x/status", {"status": {"state": "Activated"}}),
    "edit the Policy": ("PATCH", f"{RQ}/policies/default", {"spec": {"mode": "observe"}}),
    "make a Policy": ("POST", f"{RQ}/policies", {"spec": {}}),
    "edit a Budget": ("PATCH", f"{RQ}/budgets/org-a", {"spec": {"namespaces": ["team-a"]}}),
    "make a Budget": ("POST", f"{RQ}/budgets", budget("org:mine", 64)),
    "delete a Budget": ("DELETE", f"{RQ}/budgets/org-b", None),
    "forge a Budget's status": ("PATCH", f"{RQ}/budgets/org-a/status", {"status": {}}),
    "forge a Plan": ("POST", f"{RQ}/plans", {}),
    "delete a Plan": ("DELETE", f"{RQ}/plans/x", None),
    "submit into another's namespace": ("POST", f"{RQ}/namespaces/team-b/runs", of("team-b", "x")),
    "cancel another's run": ("PATCH", f"{RQ}/namespaces/team-b/runs/rb", {"spec": {"state": "Cancelled"}}),
    "delete another's run": ("DELETE", f"{RQ}/namespaces/team-b/runs/rb", None),
    "delete another's pods": ("DELETE", "/api/v1/namespaces/team-b/pods/x", None),
    "list another's pods": ("GET", "/api/v1/namespaces/team-b/pods", None),
    "read another's log": ("GET", "/api/v1/namespaces/team-b/pods/x/log", None),
    "ungovern the namespace": (
        "PATCH", "/api/v1/namespaces/team-a", {"metadata": {"labels": {"rq.davidlangworthy.io/ungoverned": "true"}}},
    ),
    "make an ungoverned namespace": (
        "POST", "/api/v1/namespaces",
        {"metadata": {"name": "free", "labels": {"rq.davidlangworthy.io/ungoverned": "true"}}},
    ),
    "drop the guard": (
        "DELETE", "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/jobtree-gpus", None,
    ),
    "bind a pod to a node": (
        "POST", f"{PODS}/x/binding",
        {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "x"}, "target": {"kind": "Node", "name": "n1"}},
    ),
}  # fmt: skip


def test_a_tenant_is_refused_what_is_not_theirs(guard: Guarded, world: Live) -> None:
    alice = guard.person("alice")
    answers = {
        name: alice.tries(method, path, body, kind=MERGE if method == "PATCH" else "application/json")
        for name, (method, path, body) in FORBIDDEN.items()
    }
    assert {name: status for name, (status, _) in answers.items()} == dict.fromkeys(FORBIDDEN, 403)
    assert all('User "alice" cannot ' in said for _, said in answers.values())
    assert world.phases() == {"ra": "Running", "rb": "Running"}


GPUS_ARE_RUNS = "GPUs are given to Runs, and this pod asks for them itself"
A_PODS_RUN = "a pod belongs to a Run from its start to its end, and only the planner makes it so"
LABELS = "labels of rq.davidlangworthy.io are the planner's to set"


def test_pods_that_get_round_the_budgets_are_refused(guard: Guarded, world: Live) -> None:
    alice, kube = guard.person("alice"), world.kube
    (own,) = world.pods("ra")
    (others,) = world.pods("rb")
    init = gpu_pod(gpus=0)
    init["spec"]["initContainers"] = [{**gpu_pod()["spec"]["containers"][0], "name": "init"}]
    forged = {"ownerReferences": others["metadata"]["ownerReferences"]}
    where = f"{PODS}/{own['metadata']['name']}"
    tries: dict[str, tuple[str, str, Any, str]] = {
        "GPUs": ("POST", PODS, gpu_pod(), GPUS_ARE_RUNS),
        "GPUs of another maker": ("POST", PODS, gpu_pod(resource="amd.com/gpu"), GPUS_ARE_RUNS),
        "a shared GPU": ("POST", PODS, gpu_pod(resource="nvidia.com/gpu.shared"), GPUS_ARE_RUNS),
        "GPUs of an init container": ("POST", PODS, init, GPUS_ARE_RUNS),
        "a run's labels": ("POST", PODS, gpu_pod(gpus=0, labels={LABEL_RUN: "ra"}), LABELS),
        "a reference to another's run": ("POST", PODS, gpu_pod(gpus=0, **forged), A_PODS_RUN),
        "a run's pod without its run": ("PATCH", where, {"metadata": {"ownerReferences": None}}, A_PODS_RUN),
        "a run's pod without its label": ("PATCH", where, {"metadata": {"labels": {LABEL_RUN: None}}}, LABELS),
        "a run's pod as another's": ("PATCH", where, {"metadata": {"labels": {LABEL_RUN: "rb"}}}, LABELS),
        "a run's pod that never goes": ("PATCH", where, {"metadata": {"finalizers": ["a.example/b"]}},
                                        "a Run's pod goes when it ends"),
    }  # fmt: skip
    answers = {
        name: alice.tries(method, path, body, kind=STRATEGIC if method == "PATCH" else "application/json")
        for name, (method, path, body, _) in tries.items()
    }
    assert {name: said[0] in {403, 422} for name, said in answers.items()} == dict.fromkeys(tries, True), answers
    assert {name: tries[name][3] in said for name, (_, said) in answers.items()} == dict.fromkeys(tries, True), answers

    marks = {"metadata": {"annotations": {"rq.davidlangworthy.io/eta": "2030-01-01T00:00:00Z"}, "labels": {"x": "y"}}}
    assert alice.tries("PATCH", where, marks, kind=MERGE)[0] == 200
    assert alice.tries("POST", PODS, gpu_pod("plain", gpus=0))[0] == 200
    assert alice.tries("DELETE", where, {"gracePeriodSeconds": 0})[0] == 200
    kube.until(lambda: world.pods("ra") == [])
    world.cycle()
    assert len(world.pods("ra")) == 1  # made again, by the planner


def test_the_planner_writes_no_configmap_of_anybody_but_those_of_runs(guard: Guarded, world: Live) -> None:
    admin, planner = guard.person("admin"), Person(api(world.kube, token=guard.planner))
    where = "/api/v1/namespaces/team-a/configmaps"
    mine = {**configmap("run-x"), "metadata": {"name": "run-x", "labels": {LABEL_RUN: "x"}}}
    assert admin.tries("POST", where, configmap("theirs"))[0] == 200
    said = [
        planner.tries("POST", where, configmap("plain")),
        planner.tries("PATCH", f"{where}/theirs", {"data": {"a": "b"}}, kind=MERGE),
        planner.tries("PATCH", f"{where}/theirs", {"metadata": {"labels": {LABEL_RUN: "x"}}}, kind=MERGE),
    ]
    assert [(status, "ConfigMaps of Runs alone" in words) for status, words in said] == [(403, True)] * 3
    assert planner.tries("GET", f"{where}/theirs")[0] == 403
    assert planner.tries("POST", where, mine)[0] == 200
    assert planner.tries("PATCH", f"{where}/run-x", {"data": {"width": "8"}}, kind=MERGE)[0] == 200


def test_running_pods_get_no_more_gpus_even_by_an_admin(guard: Guarded, world: Live) -> None:
    admin = guard.person("admin")
    (own,) = world.pods("ra")
    where = f"{PODS}/{own['metadata']['name']}"
    more = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
    debugger = {"name": "debug", "image": "pause"}
    tries = {
        "resize": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 9}}}]},
        "ephemeralcontainers": {"ephemeralContainers": [{**debugger, **more}]},
    }
    for subresource, spec in tries.items():
        status, said = admin.tries("PATCH", f"{where}/{subresource}", {"spec": spec}, kind=STRATEGIC)
        assert status in {403, 422}, said
    plain = {"spec": {"ephemeralContainers": [debugger]}}
    assert admin.tries("PATCH", f"{where}/ephemeralcontainers", plain, kind=STRATEGIC) == (200, "")


def test_controllers_make_no_pods_with_gpus_for_anybody(guard: Guarded, world: Live) -> None:
    alice, kube = guard.person("alice"), world.kube
    template = {"metadata": {"labels": {"app": "x"}}, "spec": gpu_pod()["spec"]}
    template["spec"].pop("terminationGracePeriodSeconds")
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "x"}}, "template": template}}  # fmt: skip
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "y"},
           "spec": {"template": {"spec": {**gpu_pod()["spec"], "restartPolicy": "Never"}}}}  # fmt: skip
    assert alice.tries("POST", "/apis/apps/v1/namespaces/team-a/deployments", body)[0] == 200
    assert alice.tries("POST", "/apis/batch/v1/namespaces/team-a/jobs", job)[0] == 200

    def told() -> set[str]:
        events = kube.objects("v1", "Event")
        return {each["involvedObject"]["kind"] for each in events if GPUS_ARE_RUNS in each.get("message", "")}

    try:
        kube.until(lambda: told() == {"ReplicaSet", "Job"})
        names = [each["metadata"]["name"] for each in kube.objects("v1", "Pod", label_selector=f"!{LABEL_RUN}")]
        assert names == []
    finally:
        kube.delete("apps/v1", "Deployment", "team-a", "x")


def test_a_run_deleted_with_orphans_gives_nobody_its_gpus(guard: Guarded, world: Live) -> None:
    alice, kube = guard.person("alice"), world.kube
    orphan = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Orphan"}
    assert alice.tries("DELETE", f"{RQ}/namespaces/team-a/runs/ra", orphan)[0] == 200
    freed = {"metadata": {"finalizers": None}}
    status, said = alice.tries("PATCH", f"{RQ}/namespaces/team-a/runs/ra", freed, kind=MERGE)
    assert (status, "the planner's finalizer goes when the Run holds no GPUs" in said) == (403, True)

    world.until(lambda: not world.pods("ra"))
    kube.until(lambda: kube.find(API_VERSION, "Run", "team-a", "ra") is None)
    assert {each["spec"]["runRef"]["name"] for each in open_leases(kube)} == {"rb"}


def test_a_run_that_charges_another_owner_waits_and_says_so(guard: Guarded, world: Live) -> None:
    alice = guard.person("alice")
    assert alice.tries("POST", f"{RQ}/namespaces/team-a/runs", of("team-a", "theft", 1, owner="org:b"))[0] == 200
    world.cycle()
    stored = world.kube.get(API_VERSION, "Run", "team-a", "theft")
    admitted = next(each for each in stored["status"]["conditions"] if each["type"] == "Admitted")
    assert (stored["status"]["phase"], admitted["reason"]) == ("Pending", "OwnerNotAllowed")


def test_an_opted_out_namespace_is_left_alone(guard: Guarded, kube: Kube) -> None:
    kube.namespace("drivers", **{"rq.davidlangworthy.io/ungoverned": "true"})
    admin = guard.person("admin")
    kube.until(lambda: admin.tries("POST", "/api/v1/namespaces/drivers/pods", gpu_pod("validator"))[0] in {200, 409})


def test_resources_that_the_policy_names_are_gpus(guard: Guarded, kube: Kube) -> None:
    alice = guard.person("alice")
    other = gpu_pod(resource="example.com/accelerator")
    assert alice.tries("POST", f"{PODS}?dryRun=All&x=", other)[0] == 200
    policy = {"apiVersion": API_VERSION, "kind": "Policy", "metadata": {"name": "default"}}
    kube.create({**policy, "spec": {"resourceNames": ["example.com/accelerator"]}})
    kube.until(lambda: alice.tries("POST", f"{PODS}?dryRun=All&x=", other)[0] == 403)
    assert alice.tries("POST", PODS, gpu_pod())[0] == 403


ALLOWED = {
    "submit": ("POST", f"{RQ}/namespaces/team-b/runs", of("team-b", "mine", 1, owner="org:b")),
    "suspend": ("PATCH", f"{RQ}/namespaces/team-b/runs/mine", {"spec": {"state": "Suspended"}}),
    "delete": ("DELETE", f"{RQ}/namespaces/team-b/runs/mine", None),
    **{
        f"see {kind}": ("GET", f"{RQ}/namespaces/team-b/{kind}", None) for kind in ("runs", "gpuleases", "reservations")
    },
    "see pods": ("GET", "/api/v1/namespaces/team-b/pods", None),
    **{f"see {kind}": ("GET", f"{RQ}/{kind}", None) for kind in ("budgets", "plans", "policies")},
    "see what the planner keeps": ("GET", f"/api/v1/namespaces/{SYSTEM}/configmaps", None),
}


def test_a_researcher_has_what_the_work_needs(guard: Guarded, world: Live) -> None:
    bob = guard.person("bob")
    (pod,) = world.pods("rb")
    where = f"/api/v1/namespaces/team-b/pods/{pod['metadata']['name']}"
    tries = {**ALLOWED, "read a log": ("GET", f"{where}/log", None), "delete a pod": ("DELETE", where, None)}
    answers = {
        name: bob.tries(method, path, body, kind=MERGE if method == "PATCH" else "application/json")
        for name, (method, path, body) in tries.items()
    }
    assert answers == dict.fromkeys(tries, (200, ""))
    assert bob.tries("POST", "/api/v1/namespaces/team-b/pods", gpu_pod(gpus=0))[0] == 403
    assert bob.tries("GET", f"{RQ}/namespaces/team-a/runs")[0] == 403


def test_a_researchers_commands_show_their_namespace(
    guard: Guarded, world: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBECTL_RUNS_STATE", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(world.kube.kubeconfig("bob", namespace="team-b")))
    hidden = ", ".join(f"{each} outside team-b" for each in ("runs", "gpuleases", "reservations"))
    hidden = f"{hidden}, nodes, pods outside team-b"
    note = f"note: you may not list {hidden}: what is there is not counted or shown\n"

    state = kubectl_runs("state", "--all").ok()
    assert [line.split()[:5] for line in state.out.splitlines()[1:]] == [
        ["team-b", "rb", "org:b", "H100-80GB", "Running"]
    ]
    assert state.err == note
    for words in ("leases rb", "watch rb", "pods rb"):
        assert "rb" in kubectl_runs(*words.split()).ok().out
    why = "no lottery has taken a lease of it that is kept; of those that were pruned its Plan tells: verify PLAN"
    assert kubectl_runs("verify", "rb").err == f"error: Run team-b/rb: {why}\n"
    why = f"that takes the whole cluster, and you may not list {hidden}; ask for the role jobtree-viewer"
    for words in ("fleet", "plan rb"):
        whole = kubectl_runs(*words.split())
        assert (whole.code, whole.err.splitlines()[-1]) == (1, f"error: {why}")
    explained = kubectl_runs("explain", "rb").ok()
    titles = [line for line in explained.out.splitlines() if line and not line.startswith(" ")]
    assert titles[:5] == ["Run team-b/rb", "Spec", "Conditions", "Last cycle", "Leases"]
    assert "  phase: Running" in explained.out.splitlines()
    assert explained.err == (
        f"note: what the next cycle would do takes the whole cluster, and you may not list {hidden}; "
        "ask for the role jobtree-viewer\n"
    )
    usage = kubectl_runs("budgets", "usage", "--owner", "org:b").ok()
    assert [line.split()[0] for line in usage.out.splitlines()] == ["OWNER", "org:b"]
    assert usage.err.splitlines()[1:] == [
        "note: the figures are those of the last cycle, and GPU-hours and credits may be 10 minutes old"
    ]
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump(of("team-b", "more", 1, owner="org:b")))
    said = kubectl_runs("submit", "-f", file).ok()
    assert said.out == "Run team-b/more created\n"
    assert "what the next cycle would do cannot be said" in said.err
    assert kubectl_runs("cancel", "more").ok().out.startswith("Run team-b/more cancelled")

    refused = kubectl_runs("state", "-n", "team-a").refused()
    assert 'cannot list resource "runs" in API group "rq.davidlangworthy.io" in the namespace "team-a"' in refused
    assert refused.endswith("; say -n with a namespace of yours, or ask for the role jobtree-researcher in team-a")
