"""`state`, `leases`, `fleet`, `watch`: what they print, and that they leave the file as it is."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import documents as doc
from tests.support.commands import kubectl_runs
from tests.support.times import T0, moment
from tests.support.worlds import World


def lease(
    name: str, run: str, slots: list[str], *, group: int = 0, role: str = "Active", owner: str = "org:a",
    run_owner: str = "org:a", payer: str | None = "org-a", start: str = "-2h", ended: str | None = None,
    closure: str = "Completed", funding: str = "owned", namespace: str = "default",
) -> doc.Document:  # fmt: skip
    """A stored lease."""
    segment = {"class": funding, "from": moment(start)}
    status: dict[str, Any] = {"closed": False, "funding": [segment]}
    if ended:
        status = {
            "closed": True,
            "ended": moment(ended),
            "closureReason": closure,
            "funding": [{**segment, "to": moment(ended)}],
        }
    return {
        "apiVersion": doc.API,
        "kind": "Lease",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "owner": owner,
            "runRef": {"name": run},
            "runUid": f"uid-{run}",
            "runOwner": run_owner,
            "flavor": doc.FLAVOR,
            "group": group,
            "slice": {"nodes": slots, "role": role},
            "interval": {"start": moment(start)},
            **({"paidBy": {"budget": payer, "envelope": "gpus"}} if payer else {}),
            "reason": "Start",
        },
        "status": status,
    }


def status(phase: str, reason: str, message: str = "", **more: Any) -> doc.Document:
    """A stored status in that phase, for that reason."""
    true = {"Running": {"Admitted", "Scheduled", "Running"}, "Waiting": {"Blocked"}, "Pending": set()}.get(
        phase, {phase}
    )
    speaks = {"Waiting": "Blocked", "Pending": "Admitted"}.get(phase, phase)
    conditions = []
    for kind in ("Admitted", "Scheduled", "Running", "Completed", "Failed", "Blocked"):
        said = {"reason": reason, "message": message} if kind == speaks else {"reason": "Other", "message": ""}
        conditions.append({"type": kind, "status": "True" if kind in true else "False", **said})
    return {"phase": phase, "conditions": conditions, **more}


@pytest.fixture
def world() -> World:
    """Two domains, a run in each phase, one in another namespace, one lease of a run that is gone."""
    return (
        World()
        .domain("A", nodes=2)
        .domain("B", gpus=[8, 4])
        .budget("org:a", 16)
        .budget("org:b", 16)
        .run("wide", 12, created="-3h", status=status("Running", "PodsRunning", "12 of 12 GPUs running."))
        .run("small", 2, owner="org:b", namespace="team-b", created="-26h", status=status("Running", "PodsRunning"))
        .run("late", 8, created="-10m", status=status("Pending", "Concurrency", earliestStart=moment("+1h")))
        .run("after", 8, created="-5m", follow={"after": ["late"]}, status=status("Waiting", "Upstream"))
        .run("new", 1, created="-30s")
        .run("done", 1, created="-2d", status=status("Completed", "PodsSucceeded"))
        .run("over", 1, created="-2d", status=status("Failed", "TimeLimit"))
        .run("gone", 1, created="-2d", status=status("Failed", "Cancelled"))
        .run("bad", 1, created="-2d", status=status("Failed", "PodsFailed"))
        .add(
            lease("w-0", "wide", [f"a01#{i}" for i in range(8)]),
            lease("w-1", "wide", [f"a02#{i}" for i in range(4)], payer="org-b", owner="org:b", funding="borrowed"),
            lease("w-s", "wide", ["a02#7"], role="Spare"),
            lease(
                "s-0", "small", ["b01#0", "b01#1"], owner="org:b", run_owner="org:b", payer="org-b", namespace="team-b"
            ),
            lease("old", "removed", ["b02#0"], ended="-1h", start="-3h"),
        )
    )


def test_state_lists_the_runs_of_a_namespace(world: World) -> None:
    assert world.runs("state", at=T0).ok().out == (
        "NAME    OWNER   FLAVOR      PHASE       WIDTH   AGE   NODES     REASON          ETA\n"
        "after   org:a   H100-80GB   Waiting     0/8     5m    -         Upstream        -\n"
        "bad     org:a   H100-80GB   Failed      0/1     2d    -         PodsFailed      -\n"
        "done    org:a   H100-80GB   Completed   0/1     2d    -         PodsSucceeded   -\n"
        "gone    org:a   H100-80GB   Failed      0/1     2d    -         Cancelled       -\n"
        "late    org:a   H100-80GB   Pending     0/8     10m   -         Concurrency     2026-01-01T01:00:00Z\n"
        "new     org:a   H100-80GB   Pending     0/1     30s   -         -               -\n"
        "over    org:a   H100-80GB   Failed      0/1     2d    -         TimeLimit       -\n"
        "wide    org:a   H100-80GB   Running     12/12   3h    a01-a02   PodsRunning     -\n"
    )


def test_state_of_an_owner_looks_everywhere_and_wide_adds_slurms_code(world: World) -> None:
    assert world.runs("state", "--owner", "org:b", "-o", "wide", at=T0).ok().out == (
        "NAMESPACE   NAME    OWNER   FLAVOR      PHASE     ST   WIDTH   AGE    NODES   REASON        ETA\n"
        "team-b      small   org:b   H100-80GB   Running   R    2/2     1d2h   b01     PodsRunning   -\n"
    )
    codes = [line.split()[5] for line in world.runs("state", "--all", "-o", "wide", at=T0).ok().out.splitlines()]
    assert codes == ["ST", "PD", "F", "CD", "CA", "PD", "PD", "TO", "R", "R"]


def test_state_as_json_and_yaml_are_the_objects_themselves(world: World) -> None:
    found = json.loads(world.runs("state", "-n", "team-b", "-o", "json").ok().out)
    assert found == {"apiVersion": "v1", "kind": "List", "items": found["items"]}
    (small,) = found["items"]
    stored = world.state().get("Run", "small")
    assert (small["kind"], small["spec"], small["status"]["phase"]) == ("Run", stored["spec"], "Running")
    assert doc.load(world.runs("state", "-n", "team-b", "-o", "yaml").ok().out) == [small]


def test_an_empty_namespace_is_said(world: World) -> None:
    assert world.runs("state", "-n", "nobody").ok().out == (
        "No runs: none in nobody; 9 in 2 other namespaces: --all or -n (default, team-b)\n"
    )
    assert world.runs("leases", "-n", "nobody").ok().out.startswith("No leases: none in nobody; ")


def test_leases_tell_group_role_slots_payer_and_time(world: World) -> None:
    default = [
        "RUN       GROUP   ROLE     NODES     PAYER        START                  END                    REASON\n",
        "removed   0       Active   b02#0     org-a/gpus   2025-12-31T21:00:00Z   2025-12-31T23:00:00Z   Completed\n",
        "wide      0       Active   a01#0-7   org-a/gpus   2025-12-31T22:00:00Z   -                      Start\n",
        "wide      0       Active   a02#0-3   org-b/gpus   2025-12-31T22:00:00Z   -                      Start\n",
        "wide      0       Spare    a02#7     org-a/gpus   2025-12-31T22:00:00Z   -                      Start\n",
    ]
    assert world.runs("leases").ok().out == "".join(default)
    other = "small     0       Active   b01#0-1   org-b/gpus   2025-12-31T22:00:00Z   -                      Start\n"
    places = ["NAMESPACE", *["default"] * 4, "team-b"]
    everywhere = "".join(f"{place:<9}   {line}" for place, line in zip(places, [*default, other], strict=True))
    assert world.runs("leases", "-A").ok().out == everywhere
    assert world.runs("leases", "wide", "-A").code == 2


@pytest.mark.parametrize(
    ("args", "names"),
    [
        (["wide"], ["w-0", "w-1", "w-s"]),
        (["removed"], ["old"]),
        (["small"], ["s-0"]),
        (["--owner", "org:b"], ["w-1", "s-0"]),
        (["--owner", "org:a"], ["old", "w-0", "w-1", "w-s"]),
        (["--envelope", "org-b/gpus"], ["w-1", "s-0"]),
        (["wide", "--envelope", "org-b/gpus"], ["w-1"]),
        (["-n", "team-b"], ["s-0"]),
        ([], ["old", "w-0", "w-1", "w-s"]),
        (["--all-namespaces"], ["old", "w-0", "w-1", "w-s", "s-0"]),
    ],
)
def test_leases_are_chosen_by_run_owner_envelope_and_namespace(world: World, args: list[str], names: list[str]) -> None:
    found = json.loads(world.runs("leases", *args, "-o", "json").ok().out)
    assert [lease["metadata"]["name"] for lease in found["items"]] == names


def test_every_gpu_of_the_fleet_is_counted_once(world: World) -> None:
    world.node("c01", spec={"unschedulable": True}).foreign_pod("theirs", "b02", 2)
    not_ready = {"type": "Ready", "status": "False", "lastTransitionTime": moment("-6m")}
    world.node("c02", status={"conditions": [not_ready]}).node("t1", 4, domain=None, flavor="T4")
    assert world.runs("fleet", at=T0).ok().out == (
        "FLAVOR      TOTAL   LEASED   SPARE   FOREIGN   CORDONED   FAILED   FREE   LARGEST GROUP\n"
        "H100-80GB   44      14       1       2         8          8        11     8\n"
        "T4          4       0        0       0         0          0        4      4\n"
    )
    assert world.runs("fleet", "--flavor", "H100-80GB", "--domain", at=T0).ok().out == (
        "FLAVOR      DOMAIN   TOTAL   LEASED   SPARE   FOREIGN   CORDONED   FAILED   FREE   LARGEST GROUP\n"
        "H100-80GB   A        16      12       1       0         0          0        3      3\n"
        "H100-80GB   B        12      2        0       2         0          0        8      8\n"
        "H100-80GB   d1       16      0        0       0         8          8        0      0\n"
    )
    assert world.runs("fleet", "--domain", "B", "--nodes", at=T0).ok().out == (
        "FLAVOR      DOMAIN   NODE   TOTAL   LEASED   SPARE   FOREIGN   CORDONED   FAILED   FREE   LARGEST GROUP\n"
        "H100-80GB   B        b01    8       2        0       0         0          0        6      6\n"
        "H100-80GB   B        b02    4       0        0       2         0          0        2      2\n"
    )
    assert json.loads(world.runs("fleet", "--flavor", "T4", "-o", "json", at=T0).ok().out) == [
        {"flavor": "T4", "total": 4, "leased": 0, "spare": 0, "foreign": 0, "cordoned": 0, "failed": 0, "leftOut": 0,
         "free": 4, "largestGroup": 4}
    ]  # fmt: skip
    assert world.runs("fleet", "--domain", "Z").refused() == "error: there is no domain Z; allowed are A, B, d1, t1"


def test_equal_domains_of_two_clusters_are_told_apart() -> None:
    world = World().node("n1", domain="X").node("n2", domain="X", labels={"cluster": "c2"}).node("n3", domain="Y")
    rows = world.runs("fleet", "--domain").ok().out.splitlines()
    assert [row.split()[1] for row in rows] == ["DOMAIN", "Y", "us-west/c1/X", "us-west/c2/X"]


def test_watch_prints_the_block_once_into_a_pipe(world: World) -> None:
    assert world.runs("watch", "wide").ok().out == (
        "run: default/wide\n"
        "phase: Running\n"
        "reason: PodsRunning: 12 of 12 GPUs running.\n"
        "width: 12 of 12 GPUs\n"
        "nodes: a01-a02\n"
        "payers: org-a/gpus, org-b/gpus\n"
    )
    assert world.runs("watch", "late").ok().out == (
        "run: default/late\n"
        "phase: Pending\n"
        "reason: Concurrency\n"
        "width: 0 of 8 GPUs\n"
        "earliestStart: 2026-01-01T01:00:00Z\n"
    )


def test_a_runs_name_is_looked_for_here_and_then_anywhere() -> None:
    world = World().run("one", 1, namespace="x").run("two", 1, namespace="x").run("two", 1, namespace="y").run("two", 2)
    assert "run: x/one\n" in world.runs("watch", "one").ok().out
    assert "run: default/two\n" in world.runs("watch", "two").ok().out
    assert "run: y/two\n" in world.runs("watch", "two", "-n", "y").ok().out
    world.delete("Run", "two").run("two", 1, namespace="x").run("two", 1, namespace="y")
    assert world.runs("watch", "two").refused() == (
        "error: there are runs called two in several namespaces (x, y); say which with -n NAMESPACE"
    )
    assert world.runs("watch", "one", "-n", "y").refused() == (
        "error: there is no run called one in namespace y; did you mean x/one?"
    )


def test_a_broken_run_is_named_with_what_is_wrong() -> None:
    world = World().run("r", 0)
    assert world.runs("watch", "r").refused() == (
        "error: Run default/r cannot be used: "
        "spec.resources.totalGPUs is 0; allowed is a whole number from 1 to 1000000"
    )


@pytest.mark.parametrize(
    "args",
    [
        ["state", "--all"],
        ["leases"],
        ["fleet", "--nodes"],
        ["watch", "wide"],
        ["sponsors", "list", "wide"],
    ],
)
def test_reading_leaves_the_file_as_it_is(world: World, args: list[str]) -> None:
    path = world.save()
    before = (path.read_bytes(), path.stat().st_mtime_ns, sorted(path.parent.iterdir()))
    world.runs(*args).ok()
    assert (path.read_bytes(), path.stat().st_mtime_ns, sorted(path.parent.iterdir())) == before


def test_a_missing_file_is_an_error_for_readers(tmp_path: Path) -> None:
    missing = tmp_path / "none.yaml"
    assert kubectl_runs("--state", missing, "state").refused() == (
        f"error: {missing}: there is no such file; `kubectl runs --state FILE submit -f MANIFEST` makes one"
    )


def test_a_deficit_of_one_gpu_is_one_gpu() -> None:
    world = World().node("n").budget("org:a", 16).run("first", 6)
    world.cycle()
    world.run("r", 3)
    said = kubectl_runs("--state", world.save(), "--at", moment("+1m"), "plan", "r").ok().out
    assert said.splitlines()[0] == "deficit: 1 GPU in domain=d1"


def test_without_a_state_file_the_cluster_is_the_kubeconfigs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert kubectl_runs("state").refused() == (
        f"error: no cluster is named: KUBECONFIG names {tmp_path / 'none'}, which is not there; "
        "name a file with --state FILE, or set KUBECONFIG"
    )


def test_state_lists_the_nodes_of_spares_too() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 16).run("r", 8, spares=1)
    world.cycle()

    assert world.runs("state", at=T0).ok().out.splitlines()[1].split()[4:7] == ["8/8", "1s", "a01-a02"]
