"""Arrays of runs (spec §1 Run.array): one object, whose indices are admitted, end and fail each by itself."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtree.api.kinds.run import IndexStatus
from jobtree.world.naming import arrays
from tests.support import documents as doc
from tests.support.effort import examples
from tests.support.times import moment
from tests.support.worlds import Cycle, World


def sweep(count: int = 5, gpus: int = 4, nodes: int = 2, **fields: Any) -> World:
    """An array of runs of ``gpus`` GPUs each, alone on nodes of 8."""
    array = {"count": count} | {name: fields.pop(name) for name in ("maxParallel",) if name in fields}
    world = World().policy().domain("A", nodes=nodes).budget("org:a", 8 * nodes)
    return world.run("sweep", gpus, array=array, **fields)


def told(cycle: Cycle, name: str = "sweep") -> dict[str, str]:
    """Phase and reason of the indices that an array's status lists."""
    listed = cycle.status(name).get("indices", [])
    return {each["indices"]: " ".join([each["phase"], each.get("reason", "")]).strip() for each in listed}


def holding(cycle: Cycle) -> list[str]:
    return [lease.run for lease in cycle.leases(open=True)]


def test_indices_start_as_room_allows_and_the_rest_waits() -> None:
    world = sweep()
    cycle = world.cycle()
    assert holding(cycle) == ["sweep-0", "sweep-1", "sweep-2", "sweep-3"]
    assert (told(cycle), cycle.phases) == ({"0-3": "Running Funded"}, {"sweep": "Running"})
    assert world.cycle("+1m").waits["sweep-4"].reason == "BudgetShort"


def test_of_an_array_that_waits_no_more_is_promised_cycle_after_cycle() -> None:
    """As many indices as may run at once have a promise; that they have one shows no further ones."""
    world = World().domain("A", nodes=2).budget("org:a", 32).budget("org:b", 16)
    world.run("busy", 16, by=8, limit="1h", owner="org:b").run("sweep", 8, array={"count": 10})
    plans = [world.cycle(at).plan for at in ("+0s", "+1m", "+2m")]

    promised = [[each.name for each in plan.reservations] for plan in plans]
    assert promised == [["sweep-0-20260101t000000z", "sweep-1-20260101t000000z"], [], []]


def test_leases_name_the_array_and_the_index() -> None:
    cycle = sweep().cycle()
    refs = sorted((lease["spec"]["runRef"]["name"], lease["spec"]["runRef"]["index"]) for lease in cycle.all("Lease"))
    assert refs == [("sweep", 0), ("sweep", 1), ("sweep", 2), ("sweep", 3)]


def test_no_more_than_max_parallel_run_at_once_and_a_place_is_taken_in_the_cycle_that_frees_it() -> None:
    world = sweep(maxParallel=2)
    assert world.cycle().started == ["sweep-0", "sweep-1"]
    assert world.cycle("+1m").started == []
    world.runs("complete", "sweep-0", at="+2m").ok()
    cycle = world.cycle("+2m")
    assert (cycle.started, holding(cycle)) == (["sweep-2"], ["sweep-1", "sweep-2"])
    assert told(cycle)["0"] == "Completed Completed"
    words = "2 indices of sweep run or start before it, as many as maxParallel allows."
    assert (cycle.waits["sweep-3"].reason, cycle.waits["sweep-3"].message) == ("ArrayLimit", words)


def test_an_index_whose_turn_has_not_come_says_who_speaks_for_it() -> None:
    world = sweep(count=9, maxParallel=1)
    world.cycle()
    told = {name: world.runs("explain", name, at="+1m").ok().out for name in ("sweep-1", "sweep-7")}

    assert "ArrayLimit: 1 index of sweep runs or starts before it, as many as maxParallel allows." in told["sweep-1"]
    assert "ArrayLimit: Lower indices of sweep wait before it." in told["sweep-7"]
    assert "none of its own yet: sweep speaks for its indices until it is their turn" in told["sweep-7"]


def test_each_index_ends_by_itself_and_the_array_when_all_have() -> None:
    world = sweep(count=3)
    world.cycle()
    world.runs("complete", "sweep-0", "sweep-2", at="+1m").ok()
    assert told(world.cycle("+1m")) == {"0,2": "Completed Completed", "1": "Running Funded"}
    world.runs("complete", "sweep-1", at="+2m").ok()
    cycle = world.cycle("+2m")
    assert (cycle.phases, told(cycle)) == ({"sweep": "Completed"}, {"0-2": "Completed Completed"})
    assert cycle.condition("sweep", "Completed")["message"] == "3 of 3 indices completed, 0 failed."


def test_an_array_some_of_whose_indices_failed_has_failed_when_all_are_over() -> None:
    world = sweep(count=3, limit="1h")
    world.cycle()
    world.runs("complete", "sweep-0", at="+1m").ok()
    world.cycle("+1m")
    cycle = world.cycle("+1h")
    assert (cycle.phases, told(cycle)) == (
        {"sweep": "Failed"},
        {"0": "Completed Completed", "1-2": "Failed TimeLimit"},
    )
    failed = cycle.condition("sweep", "Failed")
    assert (failed["reason"], failed["message"]) == ("IndicesFailed", "1 of 3 indices completed, 2 failed.")


def test_pods_speak_for_their_index() -> None:
    world = sweep(count=2)
    world.cycle()
    for index, phase in ((0, "Succeeded"), (1, "Failed")):
        pod = doc.foreign_pod(f"sweep-{index}-pod", "a01", 4)
        pod["metadata"] |= {"namespace": "default", "labels": {"rq.davidlangworthy.io/run": f"sweep-{index}"}}
        world.add(doc.merge(pod, {"status": {"phase": phase, "startTime": moment("+1s")}}))
    assert told(world.cycle("+1m")) == {"0": "Completed Completed", "1": "Failed Failed"}


def test_cancel_ends_one_index_for_good_or_the_whole() -> None:
    world = sweep(maxParallel=2)
    world.cycle()
    world.runs("cancel", "sweep-1", "sweep-3", at="+1m").ok()
    cycle = world.cycle("+1m")
    assert (cycle.started, told(cycle)["1,3"]) == (["sweep-2"], "Failed Cancelled")
    world.runs("cancel", "sweep", at="+2m").ok()
    cycle = world.cycle("+2m")
    assert (holding(cycle), cycle.phases) == ([], {"sweep": "Failed"})
    assert cycle.condition("sweep", "Failed")["reason"] == "Cancelled"
    assert world.cycle("+3m").started == []


def test_a_suspended_array_holds_nothing_and_goes_on_where_it_was() -> None:
    world = sweep(count=3)
    world.cycle()
    world.runs("complete", "sweep-0", at="+1m").ok()
    world.cycle("+1m")
    world.runs("suspend", "sweep", at="+2m").ok()
    cycle = world.cycle("+2m")
    assert (holding(cycle), cycle.phases, told(cycle)["0"]) == ([], {"sweep": "Pending"}, "Completed Completed")
    world.runs("resume", "sweep", at="+3m").ok()
    assert world.cycle("+3m").started == ["sweep-1", "sweep-2"]


def test_an_array_that_is_deleted_leaves_nothing_behind() -> None:
    world = sweep(count=2)
    world.cycle()
    cycle = world.delete("Run", "sweep").cycle("+1m")
    assert {(lease.run, lease.closure) for lease in cycle.leases()} == {
        ("sweep-0", "RunDeleted"),
        ("sweep-1", "RunDeleted"),
    }


def test_indices_as_listed() -> None:
    world = World().policy().domain("A").budget("org:a", 8)
    cycle = world.run("sweep", 4, array={"indices": [7, 100, 3]}).cycle()
    assert (cycle.started, told(cycle)["3,7"]) == (["sweep-3", "sweep-7"], "Running Funded")


def test_others_follow_an_array_or_one_index() -> None:
    world = sweep(count=2).run("one", 1, follow={"after": ["sweep-1"]}).run("all", 1, follow={"after": ["sweep"]})
    assert world.cycle().running == ["sweep"]
    world.runs("complete", "sweep-1", at="+1m").ok()
    assert world.cycle("+1m").started == ["one"]
    world.runs("complete", "sweep-0", at="+2m").ok()
    assert world.cycle("+2m").started == ["all"]


def test_an_array_that_follows_waits_whole() -> None:
    world = World().policy().domain("A").budget("org:a", 8).run("data", 1)
    world.run("sweep", 2, array={"count": 3}, follow={"after": ["data"]})
    assert world.cycle().phases == {"data": "Running", "sweep": "Waiting"}
    world.runs("complete", "data", at="+1m").ok()
    assert world.cycle("+1m").started == ["sweep-0", "sweep-1", "sweep-2"]


def test_the_quota_of_an_array_bounds_its_indices_together_ended_ones_included() -> None:
    world = sweep(count=6, limit="1h", quota={"maxGPUs": 8, "maxGPUHours": 12})
    assert world.cycle().started == ["sweep-0", "sweep-1"]
    world.runs("complete", "sweep-0", at="+30m").ok()
    cycle = world.cycle("+30m")  # 2 GPU-hours used and 4 provided; another one makes 10, a third 14
    assert cycle.started == ["sweep-2"]
    world.runs("complete", "sweep-1", "sweep-2", at="+31m").ok()
    cycle = world.cycle("+31m")
    assert len(cycle.started) == 1
    waiting = next(wait for name, wait in sorted(cycle.waits.items()) if name.startswith("sweep-"))
    assert "quota of run sweep" in waiting.message


def test_an_index_that_loses_its_node_waits_again_or_fails() -> None:
    for requeue, expected in ((True, "Pending"), (False, "Failed NodeFailure")):
        world = sweep(count=1, nodes=1, gpus=8, runtime={"requeue": requeue})
        world.cycle()
        cycle = world.delete("Node", "a01").cycle("+1m")
        assert told(cycle)["0"].startswith(expected)


def test_an_array_that_cannot_be_used_keeps_what_runs() -> None:
    world = sweep(count=2)
    world.cycle()
    world.edit("Run", "sweep", spec={"follow": {"after": ["sweep"]}})
    assert holding(world.cycle("+1m")) == ["sweep-0", "sweep-1"]


def test_a_cpu_array_runs_without_leases() -> None:
    world = World().policy().domain("A").budget("org:a", 8)
    cpu = {"gpuType": None, "totalGPUs": None, "pods": 1, "cpuPerPod": "4", "memoryPerPod": "8Gi"}
    world.run("prepare", 1, array={"count": 4, "maxParallel": 2}, resources=cpu)
    cycle = world.cycle()
    assert told(cycle, "prepare")["0-1"] == "Running CpuRun"
    world.runs("complete", "prepare-0", at="+1m").ok()
    cycle = world.cycle("+1m")
    assert told(cycle, "prepare") == {
        "0": "Completed Completed",
        "1": "Running CpuRun",
        "2": "Running CpuRun",
        "3": "Pending ArrayLimit",
    }


def test_two_cycles_of_one_second_are_one() -> None:
    world = sweep(maxParallel=2, limit="1h")
    world.cycle()
    world.cycle("+1h")
    before = world.path.read_text(encoding="utf-8")
    world.cycle("+1h")
    assert world.path.read_text(encoding="utf-8") == before


@pytest.mark.parametrize("array_first", [True, False])
def test_a_run_may_not_be_called_as_an_index(array_first: bool) -> None:
    names = ["sweep", "sweep-1"] if array_first else ["sweep-1", "sweep"]
    world = World().policy().domain("A").budget("org:a", 8)
    for name in names:
        world.run(name, 1, spec={"array": {"count": 2}} if name == "sweep" else {})
    cycle = world.cycle()
    said = {
        "Run default/sweep-1": "metadata.name: sweep-1 is index 1 of the array sweep; "
        "allowed is a name that is no index's",
        "Run default/sweep": "spec.array: index 1 is called sweep-1, and there is a Run of that name; "
        "allowed is an array whose indices have names of their own",
    }
    assert cycle.warnings[f"Run default/{names[1]}"] == [said[f"Run default/{names[1]}"]]
    assert cycle.started == (["sweep-0", "sweep-1"] if array_first else ["sweep-1"])


def test_v3_ten_thousand_indices_cost_what_may_start() -> None:
    world = sweep(count=10_000)
    snapshot = world.snapshot()
    assert (len(snapshot.tables["runs"]), snapshot.tables["arrays"].to_pylist()[0]["size"]) == (5, 10_000)
    cycle = world.cycle()
    assert (len(cycle.started), cycle.condition("sweep", "Admitted")["message"]) == (
        4,
        "4 of 10000 indices running, 0 completed, 0 failed, 9996 waiting.",
    )


def test_state_shows_one_line_and_explain_the_index() -> None:
    world = sweep(count=3, maxParallel=2)
    world.cycle()
    world.runs("complete", "sweep-0", at="+1m").ok()
    world.cycle("+1m")
    line = world.runs("state", at="+1m").ok().out.splitlines()[1].split()
    assert line[:5] == ["sweep", "org:a", doc.FLAVOR, "Running", "8/8"]
    assert "2 running, 1 completed, 0 failed of 3" in " ".join(line)
    assert "runningSince: 2026-01-01T00:01:00Z" in world.runs("explain", "sweep-2", at="+1m").ok().out
    assert "sweep-0" in world.runs("leases", "sweep", at="+1m").ok().out
    refused = world.runs("suspend", "sweep-2", at="+1m")
    assert (refused.code, refused.err) == (
        1,
        "error: Run default/sweep-2 is an index of the array sweep; only the whole array can be suspended\n",
    )


def test_watch_shows_what_the_indices_hold_and_an_index_its_own() -> None:
    world = sweep(count=3, maxParallel=2)
    world.cycle()
    assert [world.runs("watch", name, at="+0s").ok().out.splitlines() for name in ("sweep", "sweep-1")] == [
        [
            "run: default/sweep",
            "phase: Running",
            "reason: IndicesRunning: 2 of 3 indices running, 0 completed, 0 failed, 1 waiting.",
            "width: 8 of 8 GPUs",
            "nodes: a01",
            "payers: org-a/gpus",
        ],
        [
            "run: default/sweep-1",
            "phase: Running",
            "reason: Funded",
            "width: 4 of 4 GPUs",
            "nodes: a01",
            "payers: org-a/gpus",
        ],
    ]


@examples(60)
@given(st.sets(st.integers(0, 60)))
def test_ranges_are_read_as_they_are_written(indices: set[int]) -> None:
    text = arrays.ranges(indices)
    assert [*arrays.read_ranges(text)] == sorted(indices)


@pytest.mark.parametrize(
    "said",
    [
        IndexStatus(indices="", phase="Completed", reason="Completed"),
        IndexStatus(indices="", phase="Failed", reason="TimeLimit"),
        IndexStatus(indices="", phase="Running", reason="Funded"),
        IndexStatus(indices="", phase="Waiting", reason="Upstream", message="It waits."),
        IndexStatus(indices="", phase="Pending", reason="Capacity", message="4 GPUs short."),
    ],
)
def test_what_is_kept_of_an_index_comes_back(said: IndexStatus) -> None:
    assert arrays.brief(arrays.full(said)) == said


@examples(8)
@given(st.data())
def test_any_array_keeps_its_limit_and_ends_each_index_once(data: st.DataObject) -> None:
    count, most = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 4))
    world = sweep(count, maxParallel=most, limit="3h")
    ends = Counter[str]()
    for minute in range(4):
        cycle = world.cycle(f"+{minute}m")
        running = holding(cycle)
        assert len(running) <= min(most, 4)
        assert len(running) == len(set(running))
        chosen = data.draw(st.sets(st.sampled_from(running))) if running else set()
        ends.update(chosen)
        if chosen:
            world.runs(data.draw(st.sampled_from(["complete", "cancel"])), *sorted(chosen), at=f"+{minute}m").ok()
    assert set(ends.values()) <= {1}


def test_whatif_takes_one_index_at_a_time() -> None:
    world = sweep()
    world.cycle()

    refused = world.runs("whatif", "--cancel", "sweep")
    assert (refused.code, refused.err) == (
        1,
        "error: Run default/sweep is an array, and only one index at a time can be otherwise: sweep-INDEX\n",
    )
    assert "sweep-4" in world.runs("whatif", "--cancel", "sweep-0").ok().out
