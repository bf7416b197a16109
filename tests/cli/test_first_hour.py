"""What a newcomer types in the first hour (cases U4, U5, U7, U8, U10, U11, U12, U13), and what then is said."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobtree.world.naming.needs import left_out
from tests.support import documents as doc
from tests.support.commands import Output, jobtree, kubectl_runs
from tests.support.times import T0, moment
from tests.support.worlds import World


def columns(output: Output, *names: str) -> list[tuple[str, ...]]:
    """The rows of the first table in these columns, cut where the header says."""
    header, *rows = output.ok().out.partition("\n\n")[0].splitlines()
    found = list(re.finditer(r"\S+(?: \S+)*", header))
    ends = [each.start() for each in found[1:]] + [None]
    cells = {each[0]: slice(each.start(), end) for each, end in zip(found, ends, strict=True)}
    return [tuple(row[cells[name]].strip() for name in names) for row in rows]


@pytest.fixture
def ended() -> World:
    """A world with a cycle long ago, in which a time limit and a window end before now."""
    world = World().node("n").policy().budget("org:a", 8, start=moment("-2d"), end=moment("+2h"))
    world.run("r", 4, limit="1h").run("w", 4)
    world.cycle()
    return world


def test_u4_a_cycle_for_now_says_how_far_it_jumps_and_what_ends(ended: World) -> None:
    output = jobtree("--state", ended.path, "cycle", "--lake", ended.lake).ok()
    (warning,) = output.err.splitlines()
    assert warning.startswith("warning: no --at was given: this cycle is for now, ")
    assert warning.endswith(
        " after 2026-01-01T00:00:00Z; 1 run ends: default/r (TimeLimit), 1 window closes: org-a/gpus, 1 lease closes"
        " after 4 GPU-hours more; to go on from where the file is, say --at 2026-01-01T00:01:00Z"
    )
    assert ended.state().phases == {"r": "Failed", "w": "Running"}


@pytest.mark.parametrize(("answer", "code"), [("n\n", 1), ("\n", 1), ("y\n", 0)])
def test_u4_on_a_terminal_it_asks_and_no_writes_nothing(ended: World, answer: str, code: int) -> None:
    before = ended.path.read_bytes()
    asked = jobtree("--state", ended.path, "cycle", "--lake", ended.lake, typed=answer)
    assert "Go on? [y/N] " in asked.err
    assert (asked.code, ended.path.read_bytes() == before) == (code, code == 1)
    if code:
        assert asked.err.splitlines()[-1].endswith(
            "error: nothing was written; to go on from where the file is, say --at 2026-01-01T00:01:00Z"
        )


def test_u4_yes_asks_nothing_and_a_jump_that_ends_nothing_needs_no_word(ended: World) -> None:
    done = jobtree("--state", ended.path, "cycle", "--yes", "--lake", ended.lake, typed="").ok()
    assert "Go on?" not in done.err
    still = World().node("n").policy().budget("org:a", 8).run("r", 4)
    still.cycle()
    assert jobtree("--state", still.path, "cycle", "--lake", still.lake).ok().err == ""


def test_u5_two_state_files_in_a_folder_have_a_lake_each(tmp_path: Path) -> None:
    for name in ("a.yaml", "b.yaml"):
        world = World(tmp_path / name).node("n").policy().budget("org:a", 8).run("r", 1)
        jobtree("--state", world.save(), "cycle", "--at", T0).ok()
        jobtree("--state", world.path, "report", "usage").ok()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["a.yaml", "a.yaml.lake", "b.yaml", "b.yaml.lake"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "No runs: none in default; 9 in 3 other namespaces: --all or -n (team-0, team-1, team-2)\n"),
        (["-n", "x"], "No runs: none in x; 9 in 3 other namespaces: --all or -n (team-0, team-1, team-2)\n"),
        (["--phase", "Failed", "--all"], "No Failed runs found.\n"),
        (["--owner", "org:b"], "No runs of org:b.\n"),
    ],
)
def test_u7_an_empty_namespace_says_where_the_runs_are(args: list[str], said: str) -> None:
    world = World().budget("org:b", 8)
    for number in range(9):
        world.run(f"r{number}", 1, namespace=f"team-{number % 3}")
    assert world.runs("state", *args, at=T0).ok().out == said


def test_u7_where_no_run_is_anywhere_that_is_all() -> None:
    world = World().node("n")
    submit = f"Submit one: `kubectl runs --state {world.path} submit -f FILE`"
    assert world.runs("state", at=T0).ok().out == f"No runs found in namespace default. {submit}\n"


def test_an_empty_file_names_the_next_step(tmp_path: Path) -> None:
    file = tmp_path / "empty.yaml"
    file.touch()
    said = [kubectl_runs("--state", file, *args).ok().out for args in (("state",), ("budgets", "usage"), ("fleet",))]
    submit = f"`kubectl runs --state {file} submit -f FILE`"
    assert said == [
        f"No runs found in namespace default. Submit one: {submit}\n",
        f"No budgets found. Add one: {submit}\n",
        f"No nodes found. Add some: {submit}\n",
    ]


@pytest.mark.parametrize("other", ["state file", "lake", "nothing"])
def test_replay_says_what_it_takes(ended: World, other: str) -> None:
    given = {"state file": ended.path, "lake": ended.lake, "nothing": ended.path.parent / "nothing"}[other]
    ended.lake.rename(f"{ended.path}.lake")
    given = ended.path.parent / f"{ended.path.name}.lake" if other == "lake" else given
    newest = f"{ended.path}.lake/cycles/date=2026-01-01/20260101T000000Z.json"
    example = "FILE.lake/cycles/date=2026-01-01/20260101T000000Z.json" if other == "nothing" else newest
    takes = f"a replay takes the manifest of a cycle in a lake, such as {example}"
    assert jobtree("replay", given).refused().endswith(takes)


@pytest.mark.parametrize(
    ("program", "words", "hint"),
    [
        (kubectl_runs, ["subimt"], "invalid choice: 'subimt'; did you mean submit?"),
        (kubectl_runs, ["budgets", "usgae"], "invalid choice: 'usgae'; did you mean usage?"),
        (kubectl_runs, ["state", "-o", "jsn"], "invalid choice: 'jsn'; did you mean json?"),
        (kubectl_runs, ["state", "--phase", "runing"], "invalid choice: 'runing'; did you mean Running?"),
        (kubectl_runs, ["state", "--jsno"], "unrecognized arguments: --jsno"),
        (kubectl_runs, ["state", "--json"], "unrecognized arguments: --json; did you mean -o json?"),
        (jobtree, ["report", "usage", "--html"], "unrecognized arguments: --html; did you mean -o html?"),
        (jobtree, ["cylce"], "invalid choice: 'cylce'; did you mean cycle?"),
    ],
)
def test_a_misspelt_command_or_choice_is_asked_for(program: Any, words: list[str], hint: str) -> None:
    output = program(*words)
    assert (output.code, output.err.rstrip().endswith(hint)) == (2, True), output.err


@pytest.mark.parametrize(
    ("program", "words", "hint"),
    [
        (kubectl_runs, ["get", "runs"], "invalid choice: 'get'; did you mean state?"),
        (kubectl_runs, ["describe", "r"], "invalid choice: 'describe'; did you mean explain?"),
        (kubectl_runs, ["delete", "r"], "invalid choice: 'delete'; did you mean cancel?"),
        (kubectl_runs, ["squeue"], "invalid choice: 'squeue'; did you mean state?"),
        (kubectl_runs, ["usage"], "invalid choice: 'usage'; did you mean budgets usage?"),
        (jobtree, ["usage"], "invalid choice: 'usage'; did you mean report?"),
        (jobtree, ["submit", "-f", "r.yaml"], "invalid choice: 'submit'; did you mean apply?"),
    ],
)
def test_what_other_tools_call_a_command_is_answered_with_its_name(program: Any, words: list[str], hint: str) -> None:
    output = program(*words)
    assert (output.code, output.err.rstrip().endswith(hint)) == (2, True), output.err


def test_all_namespaces_is_said_as_kubectl_says_it() -> None:
    world = World().node("a01").run("one", 1).run("two", 1, namespace="y")
    listed = [world.runs("state", flag, at=T0).ok().out for flag in ("--all", "-A", "--all-namespaces")]
    assert "two" in listed[0]
    assert listed == [listed[0]] * 3


def test_names_are_asked_for_whatever_their_case() -> None:
    world = World().node("a01").run("train", 1)
    refused = world.runs("plan", "TRAIN", at=T0).refused()
    assert refused == "error: there is no run called TRAIN in any namespace; did you mean default/train?"


def test_objects_that_cannot_be_submitted_are_named_by_kind_and_not_one_by_one(tmp_path: Path) -> None:
    world = World().node("a01")
    strays = tmp_path / "strays.yaml"
    strays.write_text("\n---\n".join(f"{{apiVersion: v1, kind: Pod, metadata: {{name: p{n}}}}}" for n in range(40)))
    assert world.runs("submit", "-f", strays, at=T0).refused() == (
        f"error: {strays}: Pod default/p0, Pod default/p1, Pod default/p2, 37 more cannot be submitted; "
        "allowed are Run, Budget, Policy, Node"
    )


def test_a_misspelt_field_of_gpus_makes_no_run_of_cpu(tmp_path: Path) -> None:
    resources = "resources: {gpuType: H100-80GB, totalGpus: 8}, locality: {groupGPUs: 4}"
    manifest = tmp_path / "run.yaml"
    manifest.write_text(
        "{apiVersion: rq.davidlangworthy.io/v1, kind: Run, metadata: {name: r}, "
        f"spec: {{owner: 'org:a', {resources}}}}}"
    )
    found = World().node("a01").runs("submit", "-f", manifest, at=T0)
    assert found.err.splitlines() == [
        "error: Run default/r: spec.resources.totalGpus is not a field of Run; did you mean totalGPUs?",
    ]


def test_a_snapshot_counts_what_people_know(tmp_path: Path) -> None:
    world = World().node("a01").run("train", 1)
    world.cycle()
    said = jobtree("--state", world.path, "snapshot", "--at", T0, "--lake", tmp_path / "lake").ok().out
    assert said.split(": ", 1)[1] == "1 node, 1 run\n"


def test_u8_a_node_without_a_flavor_is_left_out_and_said_so() -> None:
    world = World().node("a01").node("a02", flavor=None).node("a03", flavor=None).node("cpu", 0, flavor=None)
    world.node("a04", spec={"unschedulable": True})
    output = world.runs("fleet", at=T0)
    assert columns(output, "FLAVOR", "TOTAL", "CORDONED", "LEFT OUT", "FREE") == [
        ("-", "16", "0", "16", "0"),
        ("H100-80GB", "16", "8", "0", "8"),
    ]
    assert output.out.endswith("\n\nleft out: no gpu.flavor label: a02-a03\n")
    assert [row["leftOut"] for row in json.loads(world.runs("fleet", "-o", "json", at=T0).ok().out)] == [16, 0]
    assert world.cycle().warnings == {
        "Node a02": [left_out("gpu.flavor")],
        "Node a03": [left_out("gpu.flavor")],
        "Policy default": ["there is none: the built-in defaults hold"],
    }


def test_u8_the_label_is_the_one_that_the_policy_names() -> None:
    world = World().node("a01").policy(topology={"labels": {"flavor": "nvidia.com/gpu.product"}})
    assert world.runs("fleet", at=T0).ok().out.endswith("\nleft out: no nvidia.com/gpu.product label: a01\n")


@pytest.fixture(scope="module")
def family() -> World:
    world = World().node("n").policy()
    for owner in ("org:ai:rai", "org:ai:rai:sys", "org:ai:rail", "org:lab"):
        world.budget(owner, 2, name=owner.replace(":", "-"))
    world.add(doc.budget("org:lab:x", [doc.envelope(1)], "adopted", parents=["org:ai:rai"]))
    for number, owner in enumerate(("org:ai:rai", "org:ai:rai:sys", "org:ai:rail", "org:lab", "org:lab:x")):
        world.run(f"r{number}", 1, owner=owner, namespace=f"team-{number}")
    world.cycle()
    return world


@pytest.mark.parametrize(
    ("owner", "runs"),
    [
        ("org:ai:rai", ["r0", "r1", "r4"]),
        ("org:ai:rai:*", ["r1", "r4"]),
        ("org:ai", ["r0", "r1", "r2", "r4"]),
        ("org:lab:x:*", []),
    ],
)
def test_u10_an_owner_is_meant_with_its_descendants_or_they_alone(family: World, owner: str, runs: list[str]) -> None:
    def names(output: Output, column: str) -> set[str]:
        rows = [] if output.out.startswith("No ") else columns(output, column)
        return {name for (name,) in rows}

    assert names(family.runs("state", "--owner", owner, at=T0), "NAME") == set(runs)
    assert names(family.runs("leases", "--owner", owner, at=T0), "RUN") == set(runs)
    budgets = [("org-ai-rai", "org-ai-rai-sys", "org-ai-rail", "org-lab", "adopted")[int(run[1])] for run in runs]
    usage = names(family.runs("budgets", "usage", "--owner", owner, at=T0), "BUDGET/ENVELOPE") - {""}
    assert usage == {f"{budget}/gpus" for budget in budgets}


@pytest.mark.parametrize("command", [["state"], ["leases"], ["budgets", "usage"]])
@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("org:ai:ria", "did you mean org:ai:rai?"),
        ("org:ai:ria:*", "did you mean org:ai:rai:*?"),
        ("zzz", "there are org, org:ai, org:lab, org:ai:rai, org:ai:rail, …"),
    ],
)
def test_u10_an_owner_that_nothing_names_is_refused(family: World, command: list[str], given: str, hint: str) -> None:
    top = given.removesuffix(":*")
    assert family.runs(*command, "--owner", given, at=T0).refused() == (
        f"error: there is no owner {top}: no Budget, Run or Lease names it; {hint}"
    )


def test_u11_usage_says_what_is_left_what_is_uncommitted_when_windows_end_and_the_sum() -> None:
    world = World().node("n").node("m").policy().budget("org:a", 8, maxGPUHours=200, end=moment("+5d"))
    world.budget("org:b", 4).run("r", 4, limit="10h").run("s", 2, owner="org:b")
    world.cycle()
    wanted = ("OWNER", "OWNED", "GPU-HOURS", "GPU-HOURS LEFT", "COMMITTED", "UNCOMMITTED", "WINDOW ENDS")
    assert columns(world.runs("budgets", "usage", at="+1h"), *wanted) == [
        ("org:a", "4", "4", "196", "36", "160", "2026-01-06T00:00:00Z"),
        ("org:b", "2", "2", "-", "48", "-", "-"),
        ("TOTAL", "6", "6", "196", "84", "160", "-"),
    ]
    alone = columns(world.runs("budgets", "usage", "--owner", "org:b", at="+1h"), "OWNER", "OWNED")
    assert alone == [("org:b", "2")]


def test_u11_what_an_aggregate_cap_counts_is_not_added_twice() -> None:
    world = World().node("n").policy()
    caps = [{"name": "both", "envelopes": ["x", "y"], "maxConcurrency": 6}]
    world.budget(
        "org:a", envelopes=[doc.envelope(4, name="x"), doc.envelope(4, name="y")], spec={"aggregateCaps": caps}
    )
    world.run("r", 4)
    world.cycle()
    rows = columns(world.runs("budgets", "usage", at=T0), "BUDGET/ENVELOPE", "OWNED")
    assert rows == [("org-a/x", "4"), ("org-a/y", "0"), ("org-a/both (aggregate)", "4"), ("", "4")]


@pytest.mark.parametrize("name", ["KUBECTL_RUNS_STATE", "JOBTREE_STATE"])
def test_u12_the_environment_names_the_state_file(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    world = World().node("n").policy().budget("org:a", 8).run("r", 1)
    other = World().node("n").policy()
    monkeypatch.setenv(name, str(world.save()))
    assert jobtree("cycle", "--at", T0, "--lake", world.lake).ok().out.startswith("Plan 20260101T000000Z")
    assert columns(kubectl_runs("state", "--at", T0), "NAME") == [("r",)]
    assert kubectl_runs("--state", other.save(), "state").ok().out.startswith("No runs found in namespace default.")
    assert jobtree("crds").code == 0


def test_u12_a_context_that_is_named_comes_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECTL_RUNS_STATE", str(World().node("n").save()))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    assert kubectl_runs("--context", "c", "state").refused().startswith("error: no cluster is named: KUBECONFIG names ")


@pytest.fixture
def three() -> World:
    world = World().node("n").policy().budget("org:a", 8)
    world.run("a", 1).run("b", 1).run("c", 1).run("d", 1, limit="1m")
    world.cycle()
    world.cycle("+1h")
    return world


@pytest.mark.parametrize(
    ("command", "said", "then", "phase"),
    [
        ("cancel", "cancelling at the next cycle", "Cancelled", "Failed"),
        ("suspend", "suspending at the next cycle", "Suspended", "Pending"),
        ("complete", "completing at the next cycle", "Completed", "Completed"),
    ],
)
def test_u13_several_at_once_and_state_says_that_it_is_to_come(
    three: World, command: str, said: str, then: str, phase: str
) -> None:
    words = {
        "cancel": "cancelled",
        "suspend": "suspended",
        "complete": f"complete at {moment('+2h')}, from the next cycle on",
    }
    out = three.runs(command, "a", "b", "a", at="+2h").ok().out
    assert out == f"Run default/a {words[command]}\nRun default/b {words[command]}\n"
    assert columns(three.runs("state", at="+2h"), "NAME", "REASON") == [
        ("a", said), ("b", said), ("c", "PodsRunning"), ("d", "TimeLimit")
    ]  # fmt: skip
    three.cycle("+3h")
    rows = columns(three.runs("state", at="+3h"), "NAME", "PHASE", "REASON")[:2]
    assert [(name, found) for name, found, _ in rows] == [("a", phase), ("b", phase)]
    assert {reason for _, _, reason in rows} <= {then, "MarkedComplete", "Complete", "Completed"}
    if command == "suspend":
        three.runs("resume", "a", "b", at="+3h").ok()
        assert columns(three.runs("state", at="+3h"), "REASON")[:2] == [("resuming at the next cycle",)] * 2
        three.cycle("+4h")
        assert columns(three.runs("state", at="+4h"), "REASON")[:2] == [("PodsRunning",)] * 2


@pytest.mark.parametrize("command", ["cancel", "suspend", "resume", "complete"])
def test_u13_all_or_none(three: World, command: str) -> None:
    before = three.path.read_bytes()
    assert three.runs(command, "a", "d", at="+2h").refused().startswith("error: Run default/d is Failed")
    assert three.runs(command, "a", "nobody", at="+2h").refused().startswith("error: there is no run called nobody")
    assert three.path.read_bytes() == before


def test_u13_several_are_printed_as_a_list(three: World) -> None:
    printed = json.loads(three.runs("cancel", "a", "b", "-o", "json", at="+2h").ok().out)
    assert printed["items"] == [three.state().get("Run", name) for name in "ab"]


def test_runs_that_ended_over_a_day_ago_are_listed_where_they_are_asked_for(three: World) -> None:
    names = [("a",), ("b",), ("c",)]
    assert columns(three.runs("state", at="+24h"), "NAME") == [*names, ("d",)]
    later = three.runs("state", at="+26h")
    assert columns(later, "NAME") == names
    assert later.err == "1 run that ended over a day ago left out: --all or --phase lists them\n"
    assert columns(three.runs("state", "--all", at="+26h"), "NAME") == [*names, ("d",)]
    assert columns(three.runs("state", "--phase", "Failed", at="+26h"), "NAME") == [("d",)]


def test_that_there_is_no_policy_is_said_at_the_first_cycle_only() -> None:
    world = World().node("n").budget("org:a", 8).run("r", 1)
    first, second = world.cycle(), world.cycle("+1m")
    assert (first.warnings, second.warnings) == (
        {"Policy default": ["there is none: the built-in defaults hold"]}, {}
    )  # fmt: skip


@pytest.mark.parametrize(
    ("program", "args", "usage", "error"),
    [
        (kubectl_runs, ["shrink", "r"], "usage: kubectl runs shrink", "the following arguments are required: --by"),
        (kubectl_runs, ["state", "--bogus"], "usage: kubectl runs state", "unrecognized arguments: --bogus"),
        (kubectl_runs, ["budgets", "usage", "x"], "usage: kubectl runs budgets usage", "unrecognized arguments: x"),
        (jobtree, ["--state", "f", "crds"], "usage: jobtree crds", "--state means nothing to `crds`; leave it out"),
        (jobtree, ["--state", "f", "cycle", "--every", "10s"], "usage: jobtree cycle",
         "--every and --for go together: `--every 10s --for 50s` is a cycle each 10 s, for 50 s"),
    ],
)  # fmt: skip
def test_misuse_of_a_command_shows_its_own_usage(
    program: Callable[..., Output], args: list[str], usage: str, error: str
) -> None:
    output = program(*args)
    lines = output.err.splitlines()
    assert (output.code, output.out) == (2, "")
    assert lines[0].startswith(usage)
    assert lines[-1] == f"{usage.removeprefix('usage: ')}: error: {error}"


@pytest.mark.parametrize(
    ("program", "args", "commands"),
    [
        (kubectl_runs, [], ["submit", "state", "fleet"]),
        (kubectl_runs, ["budgets"], ["usage"]),
        (kubectl_runs, ["sponsors"], ["list", "add"]),
        (jobtree, [], ["cycle", "replay", "report"]),
    ],
)
def test_without_a_command_the_commands_are_listed(
    program: Callable[..., Output], args: list[str], commands: list[str]
) -> None:
    output = program(*args)
    assert (output.code, output.out) == (2, "")
    listed = [line.split()[0] for line in output.err.splitlines() if line.startswith("    ")]
    assert [name for name in commands if name not in listed] == []


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("2026-03-01", "2026-03-01T00:00:00Z"),
        ("2026-03-01T10:00Z", "2026-03-01T10:00:00Z"),
        ("2026-03-01 10:00 Z", "2026-03-01T10:00:00Z"),
        ("2026-03-01T10:00+01:00", "2026-03-01T09:00:00Z"),
        ("2026-03-01 10:00 Europe/Berlin", "2026-03-01T09:00:00Z"),
        ("2026-07-01 10:00:30 Europe/Berlin", "2026-07-01T08:00:30Z"),
        ("2026-07-01 America/New_York", "2026-07-01T04:00:00Z"),
        ("2026-10-25T02:30+01:00", "2026-10-25T01:30:00Z"),
    ],
)
def test_times_are_typed_as_days_and_with_zones(typed: str, meant: str) -> None:
    world = World().node("n").policy().budget("org:a", 8).run("r", 1)
    assert world.runs("plan", "r", "--at", typed).ok().out.startswith(f"earliestStart: {meant} on domain=d1\n")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (
            "2026-03-01 10:00",
            '"2026-03-01 10:00" is not a time with its zone; allowed is 2026-03-01T10:00Z (UTC), ',
        ),
        ("2026-13-01", '"2026-13-01" is not a time that there is; '),
        ("2026-01-01T25:00:00Z", '"2026-01-01T25:00:00Z" is not a time that there is; '),
        ("2026-02-30 10:00 Europe/Berlin", '"2026-02-30 10:00 Europe/Berlin" is not a time that there is; '),
        ("2026-03-01 10:00 Mars/Base", "is not a time in a zone that is known (Mars/Base is not); "),
        (
            "2026-10-25 02:30 Europe/Berlin",
            "allowed is an offset, as 2026-10-25T02:30:00+02:00 or 2026-10-25T02:30:00+01:00",
        ),
        ("2026-03-29 02:30 Europe/Berlin", "is not a time that there is: clocks are put forward over it; "),
        ("tomorrow", '"tomorrow" is not a time; allowed is a time such as 2025-11-01T14:05:00Z, a day such as '),
    ],
)
def test_times_that_mean_none_or_two_are_misuse(typed: str, said: str) -> None:
    output = kubectl_runs("--state", "f", "state", "--at", typed)
    assert (output.code, said in output.err.splitlines()[-1]) == (2, True), output.err


@pytest.mark.parametrize("command", [["cycle"], ["cycle", "--every", "10s", "--for", "20s"], ["snapshot"], ["plan"]])
def test_who_names_no_cluster_hears_of_that_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    said = jobtree(*command).refused()
    assert said.startswith("error: no cluster is named: ")
    assert said.endswith("; name a file with --state FILE, or set KUBECONFIG")
