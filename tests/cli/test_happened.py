"""`events`: what happened to runs, as the objects that stay tell it, on a terminal as it happens."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

from tests.support.commands import kubectl_runs, wait_readable
from tests.support.times import T0, moment
from tests.support.worlds import World


def world() -> World:
    """One run ends by its limit, one waits for its room and then has it, one has too little money."""
    made = World().domain("A").budget("org:a", 8).budget("org:b", 4)
    made.run("first", 8, limit="1h").run("next", 8, limit="1h").run("poor", 8, owner="org:b")
    made.cycle()
    made.cycle("+1h")
    return made


def test_events_of_a_run_are_what_happened_to_it_in_its_order() -> None:
    there = world()
    assert there.runs("events", "next", at="+1h").ok().out == (
        "TIME                   RUN    EVENT       MESSAGE\n"
        "2025-12-31T23:59:58Z   next   Submitted   8 GPUs of H100-80GB, for org:a\n"
        "2026-01-01T00:00:00Z   next   Promised    a start at 2026-01-01T01:00:00Z"
        " (reservation next-20260101t000000z)\n"
        "2026-01-01T01:00:00Z   next   Started     8 GPUs on a01, paid by org-a/gpus\n"
    )
    ended = there.runs("events", "first", at="+1h").ok().out.splitlines()[-1].split(maxsplit=3)
    assert ended[:3] == [moment("+1h"), "first", "TimeLimit"]


def test_who_starts_unfunded_is_paid_by_nobody() -> None:
    there = World().node("n").run("free", 4, owner="org:f", funding={"opportunistic": True})
    there.cycle()
    assert [each["message"] for each in json.loads(there.runs("events", "free", "-o", "json").ok().out)] == [
        "4 GPUs of H100-80GB, for org:f", "4 GPUs on n, paid by nobody",
    ]  # fmt: skip


def test_events_of_a_namespace_are_those_of_all_its_runs() -> None:
    there = world()
    told = json.loads(there.runs("events", "-o", "json", at="+1h").ok().out)
    assert [each["time"] for each in told] == sorted(each["time"] for each in told)
    assert {(each["run"], each["event"]) for each in told} >= {
        ("first", "Submitted"), ("first", "Started"), ("first", "TimeLimit"), ("next", "Promised"), ("next", "Started"),
        ("poor", "BudgetShort"),
    }  # fmt: skip
    nobody = "No events: none in nobody; 3 in 1 other namespace: -A or -n (default)\n"
    assert there.runs("events", "-n", "nobody").ok().out == nobody
    assert there.runs("events", "--follow", "-o", "json").code == 2


def test_events_of_all_namespaces_name_each() -> None:
    there = World().node("n").run("r", 1, namespace="y", owner="org:x").run("r", 1, namespace="x", owner="org:x")
    assert there.runs("events", "-A", at=T0).ok().out == (
        "NAMESPACE   TIME                   RUN   EVENT       MESSAGE\n"
        "y           2025-12-31T23:59:58Z   r     Submitted   1 GPU of H100-80GB, for org:x\n"
        "x           2025-12-31T23:59:59Z   r     Submitted   1 GPU of H100-80GB, for org:x\n"
    )
    assert there.runs("events", "r", "-A", at=T0).code == 2


def test_events_are_followed_until_the_run_is_over() -> None:
    there = World().domain("A").budget("org:a", 8).run("r", 8)
    there.cycle()
    ours, theirs = pty.openpty()
    program = Path(sys.executable).with_name("kubectl-runs")
    command: list[str | Path] = [program, "--state", there.path, "events", "r", "--follow"]
    with subprocess.Popen(command, stdout=theirs, stderr=subprocess.PIPE, text=True) as following:
        os.close(theirs)
        seen = b""
        while b"Started" not in seen:
            assert wait_readable(ours, 60), seen
            seen += os.read(ours, 4096)
        kubectl_runs("--state", there.path, "complete", "r", "--at", moment("+1m")).ok()
        there.cycle("+2m")
        while b"Completed" not in seen:
            assert wait_readable(ours, 60), seen
            seen += os.read(ours, 4096)
        assert following.wait(60) == 0
    os.close(ours)
    assert seen.count(b"Submitted") == 1
    assert T0 in seen.decode()


def test_who_may_be_cut_for_a_promise_is_warned_while_that_stands() -> None:
    there = World().domain("A").budget("org:v", 8).budget("org:w", 8).run("v", 8, owner="org:v")
    there.old()
    there.run("w", 8, owner="org:w").cycle()
    warned = there.runs("events", "v").ok().out.splitlines()[-1].split(maxsplit=3)
    way = "in the way of default/w-20260101t000000z, for run w at 2026-01-01T00:15:00Z"
    harm = "which takes all 8 GPUs if it is drawn; loses all with a chance of 100.0%"
    assert warned == [moment("+0s"), "v", "MayBeCut", f"{way}, {harm}"]

    there.cycle("+15m")
    told = [each["event"] for each in json.loads(there.runs("events", "v", "-o", "json", at="+15m").ok().out)]
    assert told == ["Submitted", "Started", "Lottery", "Lottery"]  # its lease, and its words
