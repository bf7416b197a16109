"""The planner's rights are those that it uses: no verb that is granted for nothing, none that is missing."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from jobtree.api import API_VERSION
from tests.kube.access import PLANNER, SYSTEM, guarded, rendered
from tests.kube.bench.kube import Kube
from tests.kube.bench.proxy import Call, Fault, proxy
from tests.kube.live import Live, budget, run

Right = tuple[str, str, str]
"""Group, resource with its subresource, verb."""
RQ: Final = "rq.davidlangworthy.io"
SELDOM: Final = {
    (RQ, "runs/finalizers", "update"),  # asked for by clusters that check who may block an owner's deletion
    *(("", "events", verb) for verb in ("get", "create")),  # Events on Runs
    *((RQ, "reservations", verb) for verb in ("get", "create", "delete")),  # promises
    (RQ, "reservations/status", "patch"),
    *(("", "nodes", verb) for verb in ("get", "patch")),  # cordons of failed nodes
    ("", "pods", "patch"),  # cuts that are announced
    ("", "services", "patch"),  # of a Run that is gone and has a namesake
    *(("", "secrets", verb) for verb in ("create", "get", "delete")),  # the lottery's chain, made once
}
"""Rights that no cycle of this test has a use for."""


def granted() -> set[Right]:
    """What the chart gives the planner."""
    roles = [each for each in rendered("rbac.yaml") if each["metadata"]["name"] == "jobtree-planner"]
    return {
        (group, resource, verb)
        for role in roles
        for rule in role.get("rules", ())
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.fixture
def live(thin_kube: Kube, tmp_path: Path) -> Iterator[Live]:
    """A planner with the chart's rights, before whom a proxy loses the answer of each write's first try."""
    lost: set[tuple[str, str]] = set()

    def loses(call: Call) -> Fault | None:
        if (call.method, call.path) in lost:
            return None
        lost.add((call.method, call.path))
        return Fault("after")

    with guarded(thin_kube) as guard, proxy(thin_kube.url, thin_kube.processes.ca) as before:
        before.fault = loses
        yield Live(thin_kube, tmp_path / "lake", url=before.url, token=guard.planner)


def test_what_the_planner_uses_is_what_it_is_granted(live: Live) -> None:
    kube = live.kube
    kube.nodes(3)
    policy: dict[str, Any] = {"apiVersion": API_VERSION, "kind": "Policy", "metadata": {"name": "default"}}
    kube.create({**policy, "spec": {"retention": {"leases": "1h", "plans": 1}}}, budget("org:a", 24))
    for turn in range(3):
        kube.create(run(f"r{turn}", 16, resources={"gpusPerPod": 8}))
        live.cycle(ahead=turn * 3 * 3600)
        assert live.phases()[f"r{turn}"] == "Running"
        kube.patch(API_VERSION, "Run", "default", f"r{turn}", {"spec": {"state": "Cancelled"}})
        live.cycle(ahead=turn * 3 * 3600 + 60)
        assert live.phases()[f"r{turn}"] == "Failed"

    me = f"system:serviceaccount:{SYSTEM}:{PLANNER}"
    mine = [each for each in kube.processes.audit() if each["user"]["username"] == me]
    assert [each for each in mine if each["responseStatus"]["code"] == 403] == []
    used = {
        (where.get("apiGroup", ""), "/".join(filter(None, (where["resource"], where.get("subresource")))), each["verb"])
        for each in mine
        if (where := each["objectRef"])
    }
    assert used | SELDOM == granted() | (used & SELDOM)


def test_whatever_the_planner_writes_it_may_look_at_again_where_somebody_else_wrote_meanwhile() -> None:
    objects = {(group, resource, verb) for group, resource, verb in granted() if "/" not in resource}
    written = {(group, resource) for group, resource, verb in objects if verb in ("create", "patch", "update")}
    assert written == {(group, resource) for group, resource, verb in objects if verb == "get"}


def test_no_role_has_a_wildcard() -> None:
    rules = [rule for each in rendered("rbac.yaml") for rule in each.get("rules", ())]
    assert [rule for rule in rules if "*" in [*rule["apiGroups"], *rule["resources"], *rule["verbs"]]] == []


def test_viewers_change_nothing_and_the_metrics_account_has_no_rights() -> None:
    roles = {each["metadata"]["name"]: each for each in rendered("rbac.yaml") if each["kind"] == "ClusterRole"}
    reading = {"get", "list", "watch"}
    for name in ("jobtree-viewer", "jobtree-view", "jobtree-public"):
        assert {verb for rule in roles[name]["rules"] for verb in rule["verbs"]} == reading
    bound = {subject["name"] for each in rendered("rbac.yaml") for subject in each.get("subjects", ())}
    assert bound == {PLANNER, "system:authenticated"}
