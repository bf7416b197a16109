"""`cancel`, `suspend`, `resume`, `complete`, `shrink`, `sponsors add`: one patch of one run, or one sentence."""

import json
from pathlib import Path

import pytest

from tests.cli.test_reading import lease, status
from tests.support import documents as doc
from tests.support.commands import kubectl_runs
from tests.support.times import T0, moment
from tests.support.worlds import World

ELASTIC = {"minTotalGPUs": 4, "maxTotalGPUs": 12, "stepGPUs": 4}


@pytest.fixture
def world() -> World:
    return (
        World()
        .domain("A", nodes=2)
        .run("fixed", 4, status=status("Running", "PodsRunning"))
        .run("elastic", 8, malleable=ELASTIC, status=status("Running", "PodsRunning"))
        .run("waits", 8, malleable=ELASTIC, funding={"allowBorrow": True, "sponsors": ["org:b"]})
        .run("done", 1, status=status("Completed", "PodsSucceeded"))
        .run("over", 1, status=status("Failed", "TimeLimit"))
        .add(lease("e-0", "elastic", [f"a01#{i}" for i in range(8)]))
    )


def test_the_state_of_a_run_is_set_and_said(world: World) -> None:
    said = [world.runs(verb, "fixed").ok().out for verb in ("suspend", "suspend", "resume", "cancel")]
    assert said == [
        "Run default/fixed suspended\n",
        "Run default/fixed unchanged\n",
        "Run default/fixed resumed\n",
        "Run default/fixed cancelled\n",
    ]
    assert world.state().get("Run", "fixed")["spec"]["state"] == "Cancelled"
    assert world.runs("resume", "fixed").refused() == (
        "error: Run default/fixed is Cancelled, which is final; submit it under another name, or delete it first"
    )


@pytest.mark.parametrize("verb", ["suspend", "resume", "cancel", "complete"])
@pytest.mark.parametrize(("run", "how"), [("done", "Completed (PodsSucceeded)"), ("over", "Failed (TimeLimit)")])
def test_a_run_that_is_over_cannot_be_changed(world: World, verb: str, run: str, how: str) -> None:
    assert world.runs(verb, run).refused() == (
        f"error: Run default/{run} is {how}, which is final; submit it under another name, or delete it first"
    )


@pytest.mark.parametrize(("gpus", "is_refused"), [(4, False), (8, True)])
def test_a_run_that_is_over_is_not_begun_anew_by_its_file(gpus: int, is_refused: bool) -> None:
    world = World().domain("A").budget("org:a", 8).run("r", 4)
    world.cycle()
    world.runs("complete", "r", at="+1m").ok()
    world.cycle("+1m")
    again = world.runs("submit", "-f", "-", at="+2m", stdin=doc.dump([doc.run("r", gpus)]))
    what = f"Run default/r is Completed since {moment('+1m')}, which is final"
    assert again.code == int(is_refused)
    assert f"{what}; submit it under another name, or delete it first\n" in again.err


def test_a_run_that_was_cancelled_is_not_begun_anew_by_its_file() -> None:
    world = World().domain("A").budget("org:a", 8).run("r", 4)
    world.cycle()
    world.runs("cancel", "r", at="+1m").ok()
    same = doc.dump([doc.run("r", 4)])
    said = "which is final; submit it under another name, or delete it first"
    assert world.runs("submit", "-f", "-", at="+1m", stdin=same).refused() == (
        f"error: Run default/r is Cancelled, {said}"
    )
    world.cycle("+1m")
    assert world.runs("submit", "-f", "-", at="+2m", stdin=same).refused() == (
        f"error: Run default/r is Failed since {moment('+1m')} (Cancelled), {said}"
    )


def test_complete_notes_the_time_for_the_next_cycle(world: World) -> None:
    assert world.runs("complete", "fixed", at="+1h").ok().out == (
        "Run default/fixed complete at 2026-01-01T01:00:00Z, from the next cycle on\n"
    )
    annotations = world.state().get("Run", "fixed")["metadata"]["annotations"]
    assert annotations == {"rq.davidlangworthy.io/completed": moment("+1h")}
    assert world.runs("complete", "waits").refused() == (
        "error: Run default/waits is Pending; only a Running run can be complete"
    )


def test_shrink_sets_the_desired_width_by_whole_steps(world: World) -> None:
    assert world.runs("shrink", "elastic", "--by", "4").ok().out == (
        "Run default/elastic wants 4 GPUs from now on: the next cycle takes 4 of its 8\n"
    )
    assert world.state().get("Run", "elastic")["spec"]["malleable"]["desiredTotalGPUs"] == 4


@pytest.mark.parametrize(
    ("run", "by", "sentence"),
    [
        ("elastic", "3", "cannot shrink by 3: it holds 8 GPUs, and allowed are steps of 4 down to 4"),
        ("elastic", "8", "cannot shrink by 8: it holds 8 GPUs, and allowed are steps of 4 down to 4"),
        ("waits", "4", "cannot shrink by 4: it holds 0 GPUs, and allowed are steps of 4 down to 4"),
        ("fixed", "1", "has a fixed width; only a run with spec.malleable can shrink"),
    ],
)
def test_a_shrink_that_is_not_possible_says_what_is(world: World, run: str, by: str, sentence: str) -> None:
    assert world.runs("shrink", run, "--by", by).refused() == f"error: Run default/{run} {sentence}"


def test_a_sponsor_is_added_last(world: World) -> None:
    world.budget("org:c", 8)
    assert world.runs("sponsors", "add", "waits", "org:c").ok().out == "Run default/waits lists org:c as a sponsor\n"
    assert world.runs("sponsors", "add", "waits", "org:b").ok().out == "Run default/waits unchanged\n"
    listed = json.loads(world.runs("sponsors", "list", "waits", "-o", "json").ok().out)
    assert [(each["owner"], each["listed"]) for each in listed] == [("org:b", True), ("org:c", True)]
    assert world.runs("sponsors", "add", "waits", "org::c").refused() == (
        'error: "org::c" is not an owner; '
        "allowed is a colon path such as org:ai:rai:sys of letters, digits and _.@+-, first a letter or digit"
    )


@pytest.mark.parametrize("args", [["cancel", "none"], ["shrink", "fixed", "--by", "1"], ["complete", "waits"]])
def test_a_refusal_leaves_the_file_untouched(world: World, args: list[str]) -> None:
    before = world.save().read_bytes()
    world.runs(*args, at=T0).refused()
    assert world.path.read_bytes() == before


def test_what_is_not_ours_stays_as_it_was_written(world: World) -> None:
    strange = "---\n# a comment\napiVersion: v1\nkind: Secret\nmetadata: {name: s}   # kept\ndata:\n    a:   'b'\n"
    world.save()
    world.path.write_text(world.path.read_text() + strange)
    world.runs("suspend", "fixed").ok()
    assert strange in world.path.read_text()


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["nonsense"],
        ["state", "--all", "--owner", "org:a"],
        ["state", "--al"],
        ["shrink", "fixed"],
        ["shrink", "fixed", "--by", "0"],
        ["shrink", "fixed", "--by", "-1"],
        ["shrink", "fixed", "--by", "two"],
        ["watch"],
        ["submit"],
        ["state", "-o", "xml"],
        ["state", "--at", "yesterday"],
        ["completion", "tcsh"],
    ],
)
def test_misuse_exits_2_and_shows_the_usage(args: list[str], tmp_path: Path) -> None:
    output = kubectl_runs("--state", tmp_path / "none.yaml", *args)
    assert (output.code, output.out, output.err.startswith("usage: kubectl runs")) == (2, "", True)
