"""Cycles from end to end, and the operators' commands around them."""

import hashlib
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cronjobs.cycle import refuse_violations, run_cycle
from cronjobs.deadline import Planner
from cronjobs.schedule import times
from exporters.lake.lake import Lake
from exporters.plans import planfile, planjson
from jobtree.api import Refusal
from jobtree.cluster.statefile import StateFile
from jobtree.world.plan import Closure, Plan, Solver
from jobtree.world.reading.intake import intake
from jobtree.world.tables.given import given_of
from jobtree.world.tables.snapshot import take
from tests.support import documents as doc
from tests.support import invariants
from tests.support.commands import jobtree
from tests.support.times import T0, moment, unix
from tests.support.worlds import Cycle, World

LINE = "Plan {stamp} for {at}: {what}; {writes} writes\n"


@pytest.fixture
def world() -> World:
    return World().domain("A", nodes=2).budget("org:a", 16).policy().run("r", 16).run("s", 4)


def manifest(world: World, at: str = T0) -> Path:
    stamp = moment(at).replace("-", "").replace(":", "")
    return world.lake / "cycles" / f"date={moment(at)[:10]}" / f"{stamp}.json"


class Stopped(BaseException):
    """What a signal raises."""


def _stop(_number: int, _frame: object) -> None:
    raise Stopped


def test_a_signal_between_the_writes_and_their_record_waits_for_the_record(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = StateFile(world.save(), unix(T0))
    write = StateFile.write

    def signalled(self: StateFile, *args: Any) -> None:
        write(self, *args)
        signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(StateFile, "write", signalled)
    before = signal.signal(signal.SIGTERM, _stop)
    try:
        with closing(Planner()) as planner, pytest.raises(Stopped) as stopped:
            run_cycle(state, unix(T0), Lake(world.lake), planner)
    finally:
        signal.signal(signal.SIGTERM, before)

    assert manifest(world).exists()
    assert stopped.value.__notes__ == ["plan 20260101t000000z was carried out before the interrupt"]


def test_a_cycle_says_what_it_did_in_one_line(world: World) -> None:
    output = world.try_cycle().ok()
    assert (output.out, output.err) == (
        "Plan 20260101T000000Z for 2026-01-01T00:00:00Z: 1 run starts, 1 waits; 8 writes\n",
        "",
    )


def test_warnings_are_said_on_stderr_and_kept_in_the_plan(world: World) -> None:
    cycle = world.node("x", flavor=None).cycle()
    (message,) = cycle.warnings["Node x"]
    assert cycle.output.err == f"warning: Node x: {message}\n"
    stored = cycle.all("Plan")[0]["status"]["warnings"]
    assert stored == [{"object": "Node x", "message": message}]


def test_the_plan_object_records_what_it_was_made_from_and_what_it_does(world: World) -> None:
    cycle = world.cycle()
    (plan,) = cycle.all("Plan")
    assert plan["metadata"]["name"] == "20260101t000000z"
    assert (plan["spec"]["at"], plan["spec"]["snapshot"], plan["spec"]["policy"]) == (
        T0, cycle.plan.snapshot, cycle.plan.policy
    )  # fmt: skip
    assert plan["status"]["phase"] == "Applied"
    assert plan["status"]["counts"] == {
        "started": 1, "waiting": 1, "grown": 0, "cut": 0, "leasesOpened": 2, "leasesClosed": 0, "reservations": 0,
        "gpusStarted": 16, "gpusClosed": 0,
    }  # fmt: skip
    assert [stage["name"] for stage in plan["status"]["stages"]] == [stage.name for stage in cycle.plan.stages]


def test_an_unchanged_world_is_planned_to_nothing_but_the_plan(world: World) -> None:
    before = world.cycle()
    for minute in range(1, 6):
        after = world.cycle(f"+{minute}m")
        plan = after.plan
        assert (plan.leases, plan.closures, plan.segments, plan.runs) == ([], [], [], [])
        kept = [each for each in after.documents if each["kind"] != "Plan"]
        assert kept == [each for each in before.documents if each["kind"] != "Plan"]


def test_usage_that_only_the_clock_moved_is_rewritten_every_ten_minutes(world: World) -> None:
    world.cycle()
    updated = [world.cycle(f"+{minute}m").get("Budget", "org-a")["status"]["updated"] for minute in (5, 9, 10, 15, 20)]
    assert updated == [moment(span) for span in ("+0s", "+0s", "+10m", "+10m", "+20m")]


NOTHING = f"Nothing has changed since the plan for {T0}: nothing is written\n"
PAST = "error: a plan for {last} was carried out already, and this one is for {at}; {next}"
LATER = moment("+1m")
FORWARD = "time only goes forward: say a later --at"


def test_time_only_goes_forward(world: World) -> None:
    cycle = world.cycle()
    before = world.path.read_bytes()
    said = world.try_cycle("-1m").refused()
    assert said == PAST.format(last=T0, at=moment("-1m"), next=FORWARD)
    assert world.path.read_bytes() == before
    assert (manifest(world).with_suffix("") / "plan.json").read_bytes() == cycle.plan_bytes
    assert jobtree("replay", manifest(world)).ok().out == "Plan 20260101T000000Z is the same again, byte for byte\n"


def test_the_lake_keeps_its_record_of_another_state(world: World, tmp_path: Path) -> None:
    cycle = world.cycle()
    other = World(tmp_path / "other" / world.path.name).node("n").policy().run("r", 4)
    other.path.parent.mkdir()
    other.lake = world.lake
    assert other.try_cycle().ok().out.startswith("Plan 20260101T000000Z-2 for ")
    assert [each["metadata"]["name"] for each in other.state().all("Plan")] == ["20260101t000000z-2"]
    assert (manifest(world).with_suffix("") / "plan.json").read_bytes() == cycle.plan_bytes


def test_a_lake_is_of_one_cluster(world: World) -> None:
    world.cycle()
    other = World(world.path.with_name("other.yaml")).node("n").policy().run("r", 4)
    before = other.save().read_bytes()
    jobtree("--state", other.path, "plan", "--at", LATER, "--out", other.path.with_name("plan.yaml")).ok()
    sentence = (
        f"error: {world.lake}/cluster.json: this lake has the cycles of {world.path.name}, not of other.yaml; say "
        "another --lake, or, where it is the same cluster under a new name, write that name into this file"
    )
    lake = sorted(world.lake.rglob("*"))
    for command in (
        ("cycle", "--at", LATER), ("snapshot", "--at", LATER), ("apply", other.path.with_name("plan.yaml")),
        ("report", "usage"),
    ):  # fmt: skip
        assert jobtree("--state", other.path, *command, "--lake", world.lake).refused() == sentence
    assert (other.path.read_bytes(), sorted(world.lake.rglob("*"))) == (before, lake)

    (world.lake / "cluster.json").write_text('{"cluster": "other.yaml"}')
    assert jobtree("--state", other.path, "cycle", "--at", LATER, "--lake", world.lake).ok().out.startswith("Plan ")
    assert jobtree("report", "usage", "--lake", world.lake).ok().out


def test_the_same_state_may_be_planned_again_into_the_same_lake(world: World) -> None:
    state = world.save().read_bytes()
    first = world.cycle()
    world.path.write_bytes(state)
    assert world.cycle().plan_bytes == first.plan_bytes


def test_a_plan_file_of_the_past_is_neither_made_nor_carried_out(world: World, tmp_path: Path) -> None:
    out, again = tmp_path / "plan.yaml", tmp_path / "again.yaml"
    jobtree("--state", world.save(), "plan", "--at", T0, "--out", out).ok()
    world.cycle("+1s")
    before = world.path.read_bytes()
    sentence = PAST.format(last=moment("+1s"), at=T0, next=FORWARD)
    assert jobtree("--state", world.path, "apply", out).refused() == sentence
    assert jobtree("--state", world.path, "plan", "--at", T0, "--out", again).refused() == sentence
    assert (world.path.read_bytes(), again.exists()) == (before, False)


@pytest.mark.parametrize(
    "command",
    [
        "state", "leases", "events", "fleet", "budgets usage", "sponsors list s", "watch s", "plan s", "explain s",
        "pods s", "whatif --cancel r", "suspend s", "resume s", "cancel s", "complete r", "sponsors add s org:a",
    ],
)  # fmt: skip
def test_what_the_last_cycle_left_may_be_looked_at_and_changed_but_not_what_was_before(
    world: World, command: str
) -> None:
    world.cycle()
    before = world.path.read_bytes()
    asked = f"error: a plan for {T0} was carried out already, and --at asks for {moment('-1s')}; {FORWARD}"
    assert world.runs(*command.split(), at="-1s").refused() == asked
    assert world.path.read_bytes() == before
    world.runs(*command.split(), at="+0s").ok()


def test_nothing_is_verified_as_of_before_the_last_cycle(world: World) -> None:
    name = world.cycle().plan.cycle.lower()
    asked = f"error: a plan for {T0} was carried out already, and --at asks for {moment('-1s')}; {FORWARD}"
    assert world.runs("verify", name, at="-1s").refused() == asked


def everything(world: World) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in world.path.parent.rglob("*") if path.is_file()}


def test_v7_a_second_cycle_of_the_same_second_writes_nothing_where_nothing_changed(world: World) -> None:
    world.cycle()
    before = everything(world)
    assert (world.try_cycle().ok().out, everything(world)) == (NOTHING, before)


def second_of(world: World) -> Cycle:
    """The second cycle of T0: it has a name of its own, in the cluster and in the lake, and both replay."""
    first = Lake(world.lake).manifest_path(unix(T0))
    before = first.read_bytes()
    cycle = world.cycle()
    assert cycle.output.out.startswith(f"Plan 20260101T000000Z-2 for {T0}: ")
    names = [each["metadata"]["name"] for each in cycle.all("Plan")]
    assert (names, cycle.plan.cycle) == (["20260101t000000z", "20260101t000000z-2"], "20260101T000000Z-2")
    second = Lake(world.lake).manifest_path(unix(T0), 2)
    assert (second.name, first.read_bytes()) == ("20260101T000000Z-2.json", before)
    for path in (first, second):
        assert jobtree("replay", path).ok().out == f"Plan {path.stem} is the same again, byte for byte\n"
    return cycle


def test_v7_a_promise_that_moved_before_and_in_that_second_keeps_its_history() -> None:
    world = World().node("n").node("m").budget("org:a", 24).run("r", 8, limit="1h").run("s", 8, limit="2h").run("w", 8)
    world.cycle()
    first = world.state().leases("r")[0].slots[0].partition("#")[0]
    world.edit("Node", first, spec={"unschedulable": True}).cycle("+10m")
    moved = world.edit("Node", first, spec={"unschedulable": None}).cycle("+20m")
    cycle = world.run("x", 1, created=moment("+20m")).cycle("+20m")
    told = [each.all("Reservation")[0]["status"]["history"] for each in (moved, cycle)]

    assert (cycle.plan.cycle, told[0]) == ("20260101T002000Z-2", told[1])
    assert [each["at"] for each in told[1]] == [moment("+10m"), moment("+20m")]


def test_v7_and_is_planned_under_a_name_of_its_own_where_something_changed(world: World) -> None:
    world.delete("Run", "s").cycle()
    world.run("late", 8, created=moment("-1s")).edit("Run", "r", spec={"state": "Cancelled"})
    cycle = second_of(world)
    assert (cycle.started, cycle.phases) == (["late"], {"r": "Failed", "late": "Running"})
    (lease,) = cycle.leases("late")
    assert cycle.all("Lease")[-1]["metadata"]["name"] == "late-20260101t000000z-2-g0-0"
    assert (lease.start, world.usage("org-a")["gpuSecondsConsumed"]) == (T0, 0)
    assert world.try_cycle().ok().out == NOTHING
    later = world.cycle("+1h")
    assert later.plan.changed == unix(T0)
    assert world.usage("org-a", at="+1h")["gpuSecondsConsumed"] == 8 * 3600
    assert jobtree("report", "usage", "--lake", world.lake).ok().err == ""


CHANGES: dict[str, Callable[[World], object]] = {
    "a Budget": lambda w: w.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(8)]}),
    "the Policy": lambda w: w.edit("Policy", "default", spec={"age": {"cap": "24h"}}),
    "a node": lambda w: w.node("x", 8),
    "a lease closed by a hand": lambda w: w.edit(
        "Lease", "r-20260101t000000z-g0-0", status={"closed": True, "ended": T0, "closureReason": "Failed"}
    ),
    "an own pod": lambda w: w.add(own_pod()),
}


def own_pod() -> dict[str, Any]:
    pod = doc.foreign_pod("p", on="a01", gpus=8)
    labels = {"rq.davidlangworthy.io/run": "r"}
    return doc.merge(pod, {"metadata": {"labels": labels}, "status": {"phase": "Failed"}})


@pytest.mark.parametrize("name", CHANGES)
def test_v7_whatever_changed_in_the_same_second_is_planned(world: World, name: str) -> None:
    world.cycle()
    CHANGES[name](world)
    second_of(world)
    assert world.try_cycle().ok().out == NOTHING


def test_u3_the_command_that_submit_prints_works_as_printed(world: World, tmp_path: Path) -> None:
    world.cycle()
    file = tmp_path / "run.yaml"
    file.write_text(doc.dump([doc.run("n", 4)]))
    for at in (T0, moment("-1h")):
        said = world.runs("submit", "-f", file, at=at).ok()
        command = said.out.splitlines()[-1]
        assert command == f"Run it: jobtree --state {world.path} cycle --at {T0}"
        jobtree(*shlex.split(command)[3:], "--lake", world.lake).ok()
        assert "what the next cycle would do cannot be said" not in said.err


@pytest.mark.slow
def test_two_cycles_at_once_are_one_after_the_other(world: World) -> None:
    before = doc.read(world.save())
    program = Path(sys.executable).with_name("jobtree")
    both = [
        subprocess.Popen(
            [program, "--state", world.path, "cycle", "--at", T0, "--lake", world.lake],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for _ in range(2)
    ]  # fmt: skip
    said = sorted(each.communicate(timeout=120) for each in both)
    assert said == [
        (NOTHING, ""),
        (f"Plan 20260101T000000Z for {T0}: 1 run starts, 1 waits; 8 writes\n", ""),
    ]
    invariants.check(before, doc.read(world.path), unix(T0))


def test_cycles_may_be_run_in_a_row(world: World) -> None:
    state = world.save()
    output = jobtree(
        "--state", state, "cycle", "--at", T0, "--every", "10s", "--for", "20s", "--lake", world.lake
    ).ok()  # fmt: skip
    assert [line.split()[3].rstrip(":") for line in output.out.splitlines()] == [
        moment(span) for span in ("+0s", "+10s", "+20s")
    ]
    assert len(list(world.lake.glob("cycles/date=*/*.json"))) == 3


def test_without_a_start_the_clock_gives_the_times() -> None:
    (only,) = times(None, None, None)
    first, second = times(None, 1, 1)
    assert 0 <= first - only <= 1
    assert 1 <= second - first <= 2
    assert list(times(60, 10, 25)) == [60, 70, 80]
    assert list(times(60, None, None)) == [60]


def test_the_lake_is_beside_the_state_file_unless_said_otherwise(world: World) -> None:
    jobtree("--state", world.save(), "cycle", "--at", T0).ok()
    assert (world.path.with_name("cluster.yaml.lake") / "cycles").is_dir()


def test_under_observe_a_cycle_plans_and_changes_nothing(world: World) -> None:
    world.policy(mode="observe")
    world.delete("Policy", "default")
    world.policy(mode="observe")
    cycle = world.cycle()
    assert (cycle.started, cycle.phases) == (["r"], {"r": "", "s": ""})
    assert [each["status"]["phase"] for each in cycle.all("Plan")] == ["Planned"]


def test_a_snapshot_is_written_once_and_names_its_rows(world: World) -> None:
    state = world.save()
    said = [jobtree("--state", state, "snapshot", "--at", T0, "--lake", world.lake).ok().out for _ in range(2)]
    digest = said[0].split()[1].rstrip(":")
    assert said == [f"Snapshot {digest}: 2 nodes, 1 budget, 1 envelope, 2 runs\n"] * 2
    assert digest == world.cycle().plan.snapshot


def test_a_plan_is_written_to_a_file_and_carried_out_from_it(world: World, tmp_path: Path) -> None:
    out = tmp_path / "plan.yaml"
    state = world.save()
    before = state.read_bytes()
    assert jobtree("--state", state, "plan", "--at", T0, "--out", out).ok().out == (
        "Plan 20260101T000000Z for 2026-01-01T00:00:00Z: 1 run starts, 1 waits; "
        f"carry it out: `jobtree --state {state} apply {out}`\n"
    )
    assert state.read_bytes() == before
    assert jobtree("--state", state, "apply", out).ok().out == (
        "Plan 20260101T000000Z for 2026-01-01T00:00:00Z: 1 run starts, 1 waits; 8 writes\n"
    )
    assert world.state().phases == {"r": "Running", "s": "Pending"}
    assert jobtree("--state", state, "apply", out).refused() == (
        "error: the plan 20260101t000000z was carried out already; make a new one with `jobtree plan --out FILE`"
    )


def test_a_plan_carried_out_from_a_file_is_in_the_lake_as_its_cycle_would_be(world: World, tmp_path: Path) -> None:
    out = tmp_path / "plan.yaml"
    state = world.save()
    before = state.read_bytes()
    jobtree("--state", state, "plan", "--at", T0, "--out", out).ok()
    jobtree("--state", state, "apply", out, "--lake", tmp_path / "applied").ok()
    applied = {path.relative_to(tmp_path / "applied") for path in (tmp_path / "applied").rglob("*.*")}
    jobtree("replay", tmp_path / "applied" / manifest(world).relative_to(world.lake)).ok()
    state.write_bytes(before)
    world.cycle()
    assert applied == {path.relative_to(world.lake) for path in world.lake.rglob("*.*")}


def test_a_plan_file_does_not_replace_another_decision_in_the_lake(world: World, tmp_path: Path) -> None:
    other = World(tmp_path / "other" / world.path.name).node("n").policy().run("r", 4)
    other.path.parent.mkdir()
    jobtree("--state", other.save(), "cycle", "--at", T0, "--lake", world.lake).ok()
    out = tmp_path / "plan.yaml"
    state = world.save()
    before = state.read_bytes()
    jobtree("--state", state, "plan", "--at", T0, "--out", out).ok()
    said = jobtree("--state", state, "apply", out, "--lake", world.lake).refused()
    assert said.startswith(f"error: {manifest(world)}: it is the record of another decision for {T0}")
    assert state.read_bytes() == before


def test_a_cycle_does_what_the_plan_file_said(world: World, tmp_path: Path) -> None:
    jobtree("--state", world.save(), "plan", "--at", T0, "--out", tmp_path / "plan.yaml").ok()
    planned = planfile.load((tmp_path / "plan.yaml").read_text())
    assert planjson.encode(planned) == world.cycle().plan_bytes


def test_without_a_file_the_plan_is_printed(world: World) -> None:
    printed = jobtree("--state", world.save(), "plan", "--at", T0).ok().out.splitlines()
    assert printed[0] == "Plan 20260101T000000Z for 2026-01-01T00:00:00Z: 1 run starts, 1 waits"
    assert [line for line in printed if line and not line.startswith(" ")][1:] == ["Starts", "Waits", "Proof"]


STALE: dict[str, tuple[Callable[[World], object], str]] = {
    "a node": (lambda w: w.edit("Node", "a01", spec={"unschedulable": True}), "Node a01 (changed)"),
    "a run more": (lambda w: w.run("n", 1, created="-5s").save(), "Run default/n (new)"),
    "a run less": (lambda w: w.delete("Run", "s"), "Run default/s (gone)"),
    "a Budget's envelope": (
        lambda w: w.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(8)]}), "Budget org-a (changed)",
    ),
    "the Policy": (lambda w: w.edit("Policy", "default", spec={"age": {"cap": "24h"}}), "Policy default (changed)"),
    "eleven runs more": (
        lambda w: [w.run(f"n{number}", 1, created="-5s").save() for number in range(10, 21)],
        ", ".join(f"Run default/n{number} (new)" for number in range(10, 20)) + " and 1 more",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STALE)
def test_u18_a_plan_for_another_world_is_not_applied_and_what_changed_is_named(
    world: World, tmp_path: Path, name: str
) -> None:
    out = tmp_path / "plan.yaml"
    state = world.save()
    jobtree("--state", state, "plan", "--at", T0, "--out", out).ok()
    edit, changed = STALE[name]
    edit(world)
    before = state.read_bytes()
    said = jobtree("--state", state, "apply", out).refused()
    assert said == (
        f"error: the cluster has changed since this plan was made at {T0}: make a new one with "
        f"`jobtree plan --out FILE`; changed: {changed}"
    )
    assert state.read_bytes() == before


def test_u18_so_is_one_made_before_another_cycle(world: World, tmp_path: Path) -> None:
    out = tmp_path / "plan.yaml"
    jobtree("--state", world.save(), "plan", "--at", moment("+1m"), "--out", out).ok()
    world.cycle()
    said = jobtree("--state", world.path, "apply", out).refused()
    assert said.startswith(
        f"error: the cluster has changed since this plan was made at {moment('+1m')}: make a new one"
    )
    assert f"; changed: a cycle was carried out at {T0}, " in said
    assert ", Lease default/r-20260101t000000z-g0-0 (new), " in said


def test_a_plan_that_was_tampered_with_is_not_applied(world: World, tmp_path: Path) -> None:
    out = tmp_path / "plan.yaml"
    state = world.save()
    jobtree("--state", state, "plan", "--at", T0, "--out", out).ok()
    out.write_text(out.read_text().replace("a01#0", "a99#0"))
    said = jobtree("--state", state, "apply", out).refused()
    assert said.startswith("error: the checker does not pass the plan, so nothing is written: ")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (None, "there is no such file"),
        ("nonsense", "it is no plan file, or a spoilt one: Expected `object`, got `str`; make one with `jobtree plan"),
    ],
)
def test_a_plan_file_that_is_none_is_refused(world: World, tmp_path: Path, text: str | None, sentence: str) -> None:
    file = tmp_path / "plan.yaml"
    if text is not None:
        file.write_text(text)
    assert jobtree("--state", world.save(), "apply", file).refused().startswith(f"error: {file}: {sentence}")


def test_a_file_of_objects_is_no_plan_file_and_said_to_be_what_it_is(world: World, tmp_path: Path) -> None:
    made, rest = world.save(), "no plan file; make one with `jobtree plan --out FILE`"
    run = tmp_path / "run.yaml"
    run.write_text(doc.dump([doc.run("r", 1)]))
    kinds = "Budget, Node, Policy, Run"
    assert [jobtree("--state", made, "apply", file).refused() for file in (made, run)] == [
        f"error: {made}: it is a file of objects (kinds {kinds}), {rest}",
        f"error: {run}: it is a Run, {rest}",
    ]


def test_a_replay_gives_the_same_bytes_of_the_first_cycle_and_of_any_later_one(world: World) -> None:
    times = (T0, "+1m", "+2m")
    for at in times:
        world.cycle(at)
    assert [jobtree("replay", manifest(world, at)).ok().out for at in times] == [
        f"Plan 20260101T000{minute}00Z is the same again, byte for byte\n" for minute in range(3)
    ]


def test_a_replay_names_the_first_difference(world: World) -> None:
    cycle = world.cycle()
    path = manifest(world)
    stored = path.with_suffix("") / "plan.json"
    old, new = (b'"waits":[{"namespace":"default","name":"' + name for name in (b"s", b"t"))
    changed = cycle.plan_bytes.replace(old, new)
    assert changed != cycle.plan_bytes
    stored.write_bytes(changed)
    assert jobtree("replay", path).refused() == (
        f"error: {stored}: it is not the plan that its manifest names: it was changed"
    )
    before, after = (hashlib.sha256(data).hexdigest() for data in (cycle.plan_bytes, changed))
    path.write_text(path.read_text().replace(before, after))
    assert jobtree("replay", path).refused() == (
        f'error: {path}: the plan is another one: plan.waits[0].name was "t" and is now "s"'
    )


@pytest.mark.parametrize(("times", "more"), [(1, ""), (2, "; 1 more violation"), (3, "; 2 more violations")])
def test_violations_are_counted_in_the_sentence(times: int, more: str) -> None:
    snapshot = take(intake([], "none"))
    solver = Solver(name="", version="", options={})
    digest, policy, seen = snapshot.digest, snapshot.policy_digest, given_of(snapshot, 0)
    plan = Plan(jobtree="0", at=0, cycle="19700101T000000Z", snapshot=digest, policy=policy, given=seen, solver=solver)
    closure = [Closure(namespace="x", name=f"l{number}", ended=0, reason="Completed") for number in range(times)]
    with pytest.raises(Refusal) as refusal:
        refuse_violations(snapshot, msgspec.structs.replace(plan, closures=closure))
    assert str(refusal.value).endswith(f"{more})")


def test_every_crd_is_printed_or_written(tmp_path: Path) -> None:
    kinds = [each["spec"]["names"]["kind"] for each in doc.load(jobtree("crds").ok().out)]
    assert kinds == ["Budget", "Lease", "Plan", "Policy", "Reservation", "Run"]
    written = jobtree("crds", "--out", tmp_path / "new" / "folder").ok().out.splitlines()
    assert [doc.read(Path(line))[0]["spec"]["names"]["kind"] for line in written] == kinds


@pytest.mark.parametrize(
    "args",
    [["cycle", "--every", "10s"], ["cycle", "--for", "10s"], ["cycle", "--every", "0s", "--for", "1m"], ["apply"], []],
)
def test_misuse_exits_2(world: World, args: list[str]) -> None:
    output = jobtree("--state", world.save(), *args)
    assert (output.code, output.out, output.err.startswith("usage: jobtree")) == (2, "", True)


def test_a_file_that_cannot_be_read_stops_the_cycle(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [")
    said = jobtree("--state", broken, "cycle", "--at", T0).refused()
    assert said.startswith(f"error: {broken}: line ")


def test_the_time_of_a_live_cluster_is_its_own() -> None:
    said = jobtree("cycle", "--at", T0, "--lake", "none")
    assert (said.code, said.err.splitlines()[-1]) == (
        2,
        "jobtree cycle: error: --at goes with --state FILE: the time of a live cluster is its own",
    )


def test_a_deadline_is_the_policys(world: World) -> None:
    assert unix("+0s") == unix(T0)
    world.delete("Policy", "default").policy(solver={"deadline": "20s"})
    assert world.cycle().started == ["r"]
