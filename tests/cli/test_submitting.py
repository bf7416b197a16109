# ruff: noqa: N802 -- test names are case ids
"""`submit`, `plan`, `explain`, `budgets usage`: from a manifest to what the next cycle would do with it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support import documents as doc
from tests.support.commands import kubectl_runs
from tests.support.times import T0, moment
from tests.support.worlds import World


def manifest(folder: Path, *documents: doc.Document, name: str = "m.yaml") -> Path:
    path = folder / name
    path.write_text(doc.dump(documents))
    return path


@pytest.fixture
def world() -> World:
    return World().domain("A", nodes=2).domain("B", nodes=3).budget("org:a", 24)


def test_a_submitted_run_is_created_and_told_its_start(world: World, tmp_path: Path) -> None:
    made = manifest(tmp_path, doc.run("r", 16))
    assert world.runs("submit", "-f", made, at=T0).ok().out == (
        "Run default/r created\n"
        "\n"
        "Next cycle, Run default/r:\n"
        "  earliestStart: 2026-01-01T00:00:00Z on domain=A\n"
        "  intendedSlice: domain=A (nodes a01-a02)\n"
        "  payingEnvelopes: org-a/gpus (16)\n"
        "\n"
        f"Run it: jobtree --state {world.path} cycle --at 2026-01-01T00:00:00Z\n"
    )
    stored = world.state().get("Run", "r")
    assert stored["spec"] == doc.run("r", 16)["spec"]
    assert (stored["metadata"]["creationTimestamp"], len(stored["metadata"]["uid"])) == (T0, 36)
    assert "status" not in stored


def test_several_kinds_go_together_and_again_unchanged_or_configured(world: World, tmp_path: Path) -> None:
    budget = doc.budget("org:b", [doc.envelope(8)])
    made = manifest(tmp_path, doc.run("r", 1), budget, doc.policy(mode="noCuts"))
    first, second = (world.runs("submit", "-f", made, at=T0).ok().out.splitlines()[:3] for _ in range(2))
    subjects = ["Run default/r", "Budget org-b", "Policy default"]
    assert (first, second) == ([f"{each} created" for each in subjects], [f"{each} unchanged" for each in subjects])
    made = manifest(tmp_path, doc.budget("org:b", [doc.envelope(4)]))
    assert world.runs("submit", "-f", made, at=T0).ok().out == (
        f"Budget org-b configured\n\nRun it: jobtree --state {world.path} cycle --at 2026-01-01T00:00:00Z\n"
    )
    assert world.state().get("Budget", "org-b")["spec"]["envelopes"][0]["concurrency"] == 4


@pytest.mark.parametrize("form", ["json", "json-list", "yaml-list", "stdin", "two-files"])
def test_every_form_of_a_manifest_is_read(world: World, tmp_path: Path, form: str) -> None:
    runs = [doc.run("r1", 1), doc.run("r2", 1)]
    listed = {"apiVersion": "v1", "kind": "List", "items": runs}
    if form == "two-files":
        files = [manifest(tmp_path, runs[0], name="1.yaml"), manifest(tmp_path, runs[1], name="2.yaml")]
        args: list[str | Path] = ["-f", files[0], "-f", files[1]]
    else:
        text = {
            "json": "\n".join(json.dumps(run) for run in runs[:1]),
            "json-list": json.dumps(listed),
            "yaml-list": doc.dump([listed]),
            "stdin": doc.dump(runs),
        }[form]
        path = tmp_path / ("m.json" if form.startswith("json") else "m.yaml")
        path.write_text(text)
        args = ["-f", "-" if form == "stdin" else path]
    world.runs("submit", *args, at=T0, stdin=doc.dump(runs)).ok()
    expected = ["r1"] if form == "json" else ["r1", "r2"]
    assert [run["metadata"]["name"] for run in world.state().all("Run")] == expected


def test_a_missing_file_is_an_empty_cluster_to_submit_to(tmp_path: Path) -> None:
    state = tmp_path / "new.yaml"
    output = kubectl_runs("--state", state, "submit", "-f", manifest(tmp_path, doc.run("r", 1)), "--at", T0).ok()
    assert output.out.startswith("Run default/r created\n")
    assert [each["kind"] for each in doc.read(state)] == ["Run"]


def test_namespaces_come_from_the_manifest_or_from_the_option(world: World, tmp_path: Path) -> None:
    bare = doc.run("r", 1)
    del bare["metadata"]["namespace"]
    world.runs("submit", "-f", manifest(tmp_path, bare), "-n", "team", at=T0).ok()
    assert world.state().get("Run", "r")["metadata"]["namespace"] == "team"
    other = manifest(tmp_path, doc.run("s", 1, namespace="x"))
    assert world.runs("submit", "-f", other, "-n", "team", at=T0).refused() == (
        f"error: {other}: Run x/s says namespace x, and -n says team; say one of them"
    )


def test_follow_makes_the_submitted_runs_wait_for_another(world: World, tmp_path: Path) -> None:
    world.run("first", 1)
    out = world.runs("submit", "-f", manifest(tmp_path, doc.run("then", 1)), "--follow", "first", at=T0).ok().out
    assert world.state().get("Run", "then")["spec"]["follow"] == {"after": ["first"]}
    assert "  reason: Upstream: " in out


def test_all_or_none(world: World, tmp_path: Path) -> None:
    before = world.save().read_bytes()
    made = manifest(tmp_path, doc.run("good", 1), doc.run("bad", 0))
    assert world.runs("submit", "-f", made, at=T0).refused() == (
        "error: Run default/bad: spec.resources.totalGPUs is 0; allowed is a whole number from 1 to 1000000"
    )
    assert world.path.read_bytes() == before


@pytest.mark.parametrize(
    ("documents", "sentence"),
    [
        ([], "{file} has no object in it; allowed are Run, Budget, Policy, Node"),
        (
            [{"apiVersion": "v1", "kind": "List", "items": None}],
            "{file}: the List holds no objects; allowed are Run, Budget, Policy, Node",
        ),
        (
            [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}],
            "{file}: Pod default/p cannot be submitted; allowed are Run, Budget, Policy, Node",
        ),
        (
            [{**doc.run("r", 1), "apiVersion": "v1"}],
            'Run default/r: apiVersion is "v1"; allowed is rq.davidlangworthy.io/v1',
        ),
        (
            [{**doc.run("r", 1), "apiVersion": None}],
            "Run default/r: apiVersion is missing; allowed is rq.davidlangworthy.io/v1",
        ),
        ([doc.run("r", 1), doc.run("r", 2)], "{file}: Run default/r stands in it twice; remove one of the two"),
        (
            [doc.merge(doc.run("r", 1), {"spec": {"resources": {"totalGpus": 8}}})],
            "Run default/r: spec.resources.totalGpus is not a field of Run; did you mean totalGPUs?",
        ),
        (
            [doc.merge(doc.run("r", 1), {"spec": {"follow": {"after": ["s"]}}}),
             doc.merge(doc.run("s", 1), {"spec": {"follow": {"after": ["r"]}}})],
            "Run default/r: spec.follow.after makes a cycle: r → s → r; allowed is follow without a cycle",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_submitted_is_said_in_one_sentence(
    world: World, tmp_path: Path, documents: list[doc.Document], sentence: str
) -> None:
    made = manifest(tmp_path, *documents)
    before = world.save().read_bytes()
    said = world.runs("submit", "-f", made, at=T0).refused()
    assert said == f"error: {sentence.format(file=made)}"
    assert world.path.read_bytes() == before


def test_a_submitted_run_may_not_change_what_is_fixed(world: World, tmp_path: Path) -> None:
    world.runs("submit", "-f", manifest(tmp_path, doc.run("r", 4)), at=T0).ok()
    assert world.runs("submit", "-f", manifest(tmp_path, doc.run("r", 8)), at=T0).refused() == (
        "error: Run default/r: spec.resources.totalGPUs changed from 4 to 8; "
        "after creation only state, malleable.desiredTotalGPUs and funding.sponsors may change"
    )


def test_a_run_from_a_namespace_that_its_owner_is_not_bound_to_is_refused(world: World, tmp_path: Path) -> None:
    bound = doc.budget("org:b", [doc.envelope(8)], namespaces=["team-b"])
    good, evil = (doc.run("r", 1, "org:b:x", namespace) for namespace in ("team-b", "evil"))
    assert world.runs("submit", "-f", manifest(tmp_path, bound, evil), at=T0).refused() == (
        "error: Run evil/r: spec.owner is org:b:x, which runs in namespace evil may not charge: "
        "org:b:x may be charged from team-b, not from evil"
    )
    world.runs("submit", "-f", manifest(tmp_path, bound, good), at=T0).ok()


def test_sponsors_without_borrowing_are_accepted_with_a_warning(world: World, tmp_path: Path) -> None:
    made = manifest(tmp_path, doc.merge(doc.run("r", 1), {"spec": {"funding": {"sponsors": ["org:b"]}}}))
    output = world.runs("submit", "-f", made, at=T0).ok()
    assert output.err.startswith("warning: Run default/r: spec.funding.sponsors")
    assert output.err.count("\n") == 1


def test_flavors_that_no_node_has_are_warned_of(world: World, tmp_path: Path) -> None:
    run = doc.merge(doc.run("r", 1), {"spec": {"resources": {"gpuType": "H100-80G"}}})
    budget = doc.budget("org:b", [doc.envelope(8), doc.envelope(8, name="second", flavor="h100")])
    output = world.node("t", flavor="T4").runs("submit", "-f", manifest(tmp_path, run, budget), at=T0).ok()
    assert output.err.splitlines() == [
        "warning: Run default/r: spec.resources.gpuType is H100-80G, and no node has it; there are H100-80GB, T4",
        "warning: Budget org-b: spec.envelopes[1].flavor is h100, and no node has it; there are H100-80GB, T4",
    ]


def test_a_file_that_cannot_be_read_is_refused(world: World, tmp_path: Path) -> None:
    missing = tmp_path / "none.yaml"
    assert world.runs("submit", "-f", missing).refused() == f"error: {missing}: there is no such file"
    assert world.runs("submit", "-f", tmp_path).refused() == (
        f"error: {tmp_path}: it is a directory; name a file in it"
    )


def test_plan_of_a_run_that_waits_gives_deficit_reason_and_shortage(world: World) -> None:
    world.run("r", 20, by=4).run("big", 48)
    assert world.runs("plan", "r", at=T0).ok().out == (
        "earliestStart: 2026-01-01T00:00:00Z on domain=B\n"
        "intendedSlice: domain=B (nodes b01-b03)\n"
        "payingEnvelopes: org-a/gpus (20)\n"
    )
    waits = world.runs("plan", "big", at=T0).ok().out.splitlines()
    assert [line.partition(":")[0] for line in waits] == ["reason", "short"]


def test_plan_and_explain_write_nothing(world: World) -> None:
    world.run("r", 20, by=4)
    before = (world.save().read_bytes(), sorted(world.path.parent.iterdir()))
    world.runs("plan", "r", at=T0).ok()
    world.runs("explain", "r", at=T0).ok()
    world.runs("budgets", "usage", at=T0).ok()
    assert (world.path.read_bytes(), sorted(world.path.parent.iterdir())) == before


def test_plan_as_json_holds_the_same_facts(world: World) -> None:
    world.run("r", 20, by=4)
    assert json.loads(world.runs("plan", "r", "-o", "json", at=T0).ok().out) == {
        "run": "default/r",
        "phase": "Running",
        "earliestStart": T0,
        "intendedSlice": [{"domain": "B", "nodes": ["b01", "b02", "b03"]}],
        "payingEnvelopes": {"org-a/gpus": 20},
    }


def test_explain_tells_spec_conditions_next_cycle_and_leases(world: World) -> None:
    world.run("r", 4).cycle()
    assert world.runs("explain", "r", at="+1h").ok().out == (
        "Run default/r\n"
        "\n"
        "Spec\n"
        "  owner: org:a\n"
        "  resources.gpuType: H100-80GB\n"
        "  resources.totalGPUs: 4\n"
        "\n"
        "Conditions\n"
        "  Admitted=True  Funded: 4 GPUs: 4 owned.\n"
        "  Scheduled=True  Placed: 4 GPUs in 1 group on 1 node.\n"
        "  Running=True  PodsRunning: 4 of 4 GPUs running.\n"
        "  Completed=False  NotFinished: No time limit.\n"
        "  Failed=False  NoFailure: 0 pods failed.\n"
        "  Blocked=False  NothingToWaitFor: 0 upstream runs outstanding.\n"
        "\n"
        "Next cycle\n"
        "  runningSince: 2026-01-01T00:00:00Z on domain=A\n"
        "  slice: domain=A (nodes a01)\n"
        "  payingEnvelopes: org-a/gpus (4)\n"
        "\n"
        "Leases\n"
        "  RUN   GROUP   ROLE     NODES     PAYER        START                  END   REASON\n"
        "  r     0       Active   a01#0-3   org-a/gpus   2026-01-01T00:00:00Z   -     Start\n"
        "\n"
        "Cuts\n"
        "  would lose first: all 4 GPUs, by the lottery, which may draw it from 2026-01-01T12:00:00Z on\n"
    )
    listed = json.loads(world.runs("explain", "r", "-o", "json", at="+1h").ok().out)
    assert [each["kind"] for each in listed["items"]] == ["Run", "Lease"]


def test_usage_is_computed_at_the_time_that_is_asked_for(world: World) -> None:
    world.budget("org:b", 8, lending={"allow": True})
    world.run("own", 4).run("loan", 2, owner="org:c", funding={"allowBorrow": True, "sponsors": ["org:b"]}).cycle()
    assert world.runs("budgets", "usage", at="+90m").ok().out == (
        "OWNER   BUDGET/ENVELOPE   OWNED   SHARED   BORROWED   UNFUNDED   SPARE   HEADROOM   GPU-HOURS   COMMITTED\n"
        "org:a   org-a/gpus        4       0        0          0          0       20         6           96\n"
        "org:b   org-b/gpus        0       0        2          0          0       6          3           48\n"
        "TOTAL                     4       0        2          0          0       -          9           144\n"
    )
    assert world.usage("org-a", at="+90m") == {
        "budget": "org-a", "owner": "org:a", "kind": "Envelope", "name": "gpus", "ownedGPUs": 4, "sharedGPUs": 0,
        "borrowedGPUs": 0, "unfundedGPUs": 0, "spareGPUs": 0, "headroomGPUs": 20, "gpuSecondsConsumed": 21600,
        "gpuHoursConsumed": 6, "gpuHoursCommitted": 96,
    }  # fmt: skip
    records = json.loads(world.runs("budgets", "usage", "--owner", "org:c", "-o", "json", at="+90m").ok().out)
    loan = {"kind": "Loan", "owner": "org:c", "lender": "org:b", "budget": "org-b", "name": "gpus"}
    assert records == [{**loan, "borrowedGPUs": 2, "spareGPUs": 0}]
    assert world.runs("budgets", "usage", "--owner", "org:c", at="+90m").ok().out == (
        "No budgets found.\n"
        "\n"
        "Borrowed by org:c\n"
        "BORROWER   LENDER   BUDGET/ENVELOPE   GPUS   SPARE\n"
        "org:c      org:b    org-b/gpus        2      0\n"
    )


def test_large_whole_numbers_of_usage_are_printed_whole(world: World) -> None:
    world.budget("org:b", 1_000_000, maxGPUHours=23_456_789)
    assert world.runs("budgets", "usage", "--owner", "org:b", at=T0).ok().out.splitlines()[1].split()[7:] == [
        "1000000", "0", "23456789", "0", "23456789"
    ]  # fmt: skip


def test_the_life_of_a_run_by_commands_alone(world: World) -> None:
    world.run("r", 4).cycle()
    world.runs("complete", "r", at="+2h").ok()
    cycle = world.cycle("+3h")
    assert cycle.phases == {"r": "Completed"}
    assert [(lease.ended, lease.closure) for lease in cycle.leases("r")] == [(moment("+2h"), "Completed")]


@pytest.mark.parametrize("made", [doc.run("r", 4), doc.budget("org:r", [doc.envelope(8)], "r"), doc.policy()])
def test_V5_what_a_server_sets_is_not_the_submitters_to_say(world: World, tmp_path: Path, made: doc.Document) -> None:
    said = {
        "uid": "mine", "creationTimestamp": "2020-01-01T00:00:00Z", "deletionTimestamp": "2020-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 30, "generation": 7, "resourceVersion": "9", "selfLink": "/r",
        "finalizers": ["x/y"], "managedFields": [{"manager": "m"}],
        "ownerReferences": [{"apiVersion": "v1", "kind": "Run", "name": "q", "uid": "u", "controller": True}],
    }  # fmt: skip
    kept = {"labels": {"team": "a"}, "annotations": {"why": "b"}}
    file = manifest(tmp_path, doc.merge(made, {"metadata": {**said, **kept}, "status": {"phase": "Completed"}}))
    world.runs("submit", "-f", file, at=T0).ok()
    stored = world.state().get(made["kind"], made["metadata"]["name"])

    found = stored["metadata"]
    assert {name: found[name] for name in found if name not in ("name", "namespace", "uid")} == {
        "creationTimestamp": T0, **kept,
    }  # fmt: skip
    assert found["uid"] != "mine"
    assert "status" not in stored
    world.runs("submit", "-f", file, at="+1h").ok()
    assert world.state().get(made["kind"], made["metadata"]["name"])["metadata"] == found


def test_V5_age_counts_from_the_submit(world: World, tmp_path: Path) -> None:
    old = doc.merge(doc.run("old", 24), {"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}})
    world.run("first", 24, created="-1h")
    world.runs("submit", "-f", manifest(tmp_path, old), at=T0).ok()

    assert world.cycle().running == ["first"]


QUANTITY = "a quantity such as 4, 500m or 2Gi"


@pytest.mark.parametrize(
    ("spec", "field", "given", "allowed"),
    [
        ({"tolerations": [3]}, "tolerations[0]", "3", "a mapping with key, operator, value, effect, tolerationSeconds"),
        ({"nodeSelector": {"a": 1}}, "nodeSelector.a", "1", "a text (in quotes)"),
        *(
            (
                {"containers": [{}, {"resources": {need: {"cpu": given}}}]},
                f"containers[1].resources.{need}.cpu", said, QUANTITY,
            )
            for need in ("requests", "limits")
            for given, said in (("abc", '"abc"'), (-5, "-5"), ("1e400", '"1e400"'))
        ),
        (
            {"initContainers": [{"resources": {"requests": {"memory": "x"}}}]},
            "initContainers[0].resources.requests.memory", '"x"', QUANTITY,
        ),
        ({"overhead": {"cpu": "x"}}, "overhead.cpu", '"x"', QUANTITY),
        *(
            (
                {part: [{"resources": {need: {"nvidia.com/gpu.shared": 8}}}]},
                f"{part}[0].resources.{need}[nvidia.com/gpu.shared]", "8", "to leave it out: GPUs of a run are whole",
            )
            for part in ("containers", "initContainers")
            for need in ("requests", "limits")
        ),
    ],
)  # fmt: skip
def test_what_a_template_asks_for_is_refused_with_run_and_field(
    world: World, tmp_path: Path, spec: dict[str, Any], field: str, given: str, allowed: str
) -> None:
    template = {"spec": {"containers": [{"name": "main"}], **spec}}
    made = manifest(tmp_path, doc.merge(doc.run("r", 1), {"spec": {"template": template}}))
    words = f"Run default/r: spec.template.spec.{field} is {given}; allowed is {allowed}"
    assert world.runs("submit", "-f", made, at=T0).refused() == f"error: {words}"
    world.path.write_bytes(world.save().read_bytes() + b"---\n" + made.read_bytes())
    assert f"warning: {words}\n" in world.runs("state", at=T0).ok().err
