"""The planner's process: whatever the search does, the cycle has the best plan in time, or says why it has none."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from cronjobs.cycle import run_cycle
from cronjobs.deadline import Planner
from cronjobs.wire import Request
from exporters.lake.lake import Lake
from jobtree.api import Refusal
from jobtree.cluster.statefile import StateFile
from jobtree.world.plan import PlanWarning
from jobtree.world.reading.intake import intake
from jobtree.world.tables.snapshot import take
from planner import Planning
from tests.cycle.searches import plan
from tests.reference.worlds import AT, snapshot
from tests.support import documents as doc
from tests.support.commands import wait_readable
from tests.support.times import T0, unix
from tests.support.worlds import World

EMPTY = take(intake([], "none"))
SOON = 0.2


@contextmanager
def planner(way: str) -> Iterator[Planner]:
    made = Planner((sys.executable, "-m", "tests.cycle.searches", way))
    try:
        yield made
    finally:
        made.close()


@pytest.fixture(scope="module")
def finishing() -> Iterator[Planner]:
    """A warm one, whose searches find two plans and end."""
    with planner("finishes") as made:
        made.start()
        yield made


def alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_the_final_plan_is_taken_as_it_is(finishing: Planner) -> None:
    assert finishing.plan(EMPTY, 7, deadline=60) == plan(2, 7)


def test_the_process_is_told_the_digests_and_makes_none_of_them_again() -> None:
    world = World().domain("A").budget("org:a", 8).run("r", 4).snapshot()
    sent = msgspec.msgpack.decode(msgspec.msgpack.encode(Request.of(world, AT)), type=Request)
    other = msgspec.structs.replace(sent, digests={**sent.digests, "nodes": "told"})

    assert sent.snapshot.table_digests == world.table_digests
    assert other.snapshot.table_digests == {**world.table_digests, "nodes": "told"}


def test_who_waits_hears_of_each_incumbent_with_its_gap_and_of_the_end() -> None:
    runs = [doc.merge(doc.run(name, gpus), {"metadata": {"uid": name}}) for name, gpus in (("a", 5), ("b", 8))]
    world = snapshot([doc.node("n1"), doc.node("n2"), doc.budget("org:a", [doc.envelope(12)]), *runs])
    steps = "1 found, 58.3333%", "1 found, 37.5000%", "2 found, 0.0000%", "2 found, 0.0000%"
    words = ["1 found, looking for a better one", *(f"{step} from the bound" for step in steps)]
    heard = list[str]()
    with planner("real") as real:
        plans = [real.plan(world, AT, deadline=60, on_news=listen) for listen in (None, heard.append)]
    assert heard == [*words, "writing the best one down"]
    assert plans[0] == plans[1]


def test_a_warm_process_answers_again(finishing: Planner) -> None:
    first = finishing.pid
    plans = [finishing.plan(EMPTY, at, deadline=60) for at in (1, 2, 3)]
    assert (plans, finishing.pid) == ([plan(2, 1), plan(2, 2), plan(2, 3)], first)


def test_other_work_may_be_done_between_question_and_answer(finishing: Planner) -> None:
    for at in (1, 2):
        finishing.ask(EMPTY, at, deadline=60)
        finishing.listen()
        assert finishing.answer() == plan(2, at)


def test_an_answer_that_nobody_waited_for_is_not_taken_for_the_next_one(finishing: Planner) -> None:
    finishing.ask(EMPTY, 1, deadline=60)
    first = finishing.pid
    finishing.ask(EMPTY, 2, deadline=60)
    assert (finishing.answer(), finishing.pid != first) == (plan(2, 2), True)


def test_work_that_outlasts_the_deadline_does_not_lose_the_plans_made_meanwhile() -> None:
    with planner("hangs-later") as hanging:
        hanging.ask(EMPTY, 0, deadline=0.0, grace=60)
        assert hanging.answer() == msgspec.structs.replace(plan(1), truncated=True)


def test_at_the_deadline_the_process_is_killed_and_one_more_writes_the_best_plan_so_far_down(tmp_path: Path) -> None:
    log, heard = tmp_path / "started", list[str]()
    begin = f'echo >> {log}; exec {sys.executable} -m tests.cycle.searches hangs-later "$0"'
    hanging = Planner(("/bin/sh", "-c", begin))
    try:
        hanging.start()
        pid = hanging.pid
        assert pid is not None
        found = hanging.plan(EMPTY, 0, deadline=SOON, on_news=heard.append)
    finally:
        hanging.close()
    assert found == msgspec.structs.replace(plan(1), truncated=True)
    assert heard == ["1 found, looking for a better one", "the time is up, writing the best one down"]
    assert (alive(pid), log.read_text()) == (False, 2 * "\n")


def test_a_real_search_that_hangs_leaves_its_first_incumbent_with_its_own_gap() -> None:
    runs = [doc.merge(doc.run(name, gpus), {"metadata": {"uid": name}}) for name, gpus in (("a", 5), ("b", 8))]
    world = snapshot([doc.node("n1"), doc.budget("org:a", [doc.envelope(8)]), *runs])
    with planner("interrupted") as hanging:
        found = hanging.plan(world, AT, deadline=SOON)
    planning = Planning(world, AT)
    assert found == msgspec.structs.replace(planning.finish(next(planning.incumbents())), truncated=True)
    assert found.stages[0].gap == 0.375


def test_a_final_plan_that_is_only_written_down_late_is_whole() -> None:
    with planner("is-slow-to-write") as slow:
        assert slow.plan(EMPTY, 7, deadline=1) == plan(2, 7)


@pytest.mark.parametrize(
    ("way", "sentence"),
    [
        (
            "never-writes",
            "the planner did not write down its best plan within 0.2 s, so nothing is written; run it again",
        ),
        ("cannot-write", "the planner failed: ValueError in searches.py:{line}: no words"),
    ],
)
def test_an_incumbent_that_nobody_can_write_down_is_no_plan(way: str, sentence: str) -> None:
    with planner(way) as failing, pytest.raises(Refusal) as refusal:
        failing.plan(EMPTY, 0, deadline=SOON, grace=SOON)
    assert str(refusal.value) == sentence.format(line=_line_of('ValueError("no words'))


def test_a_first_plan_that_comes_after_the_deadline_is_waited_for() -> None:
    with planner("is-slow") as slow:
        assert slow.plan(EMPTY, 0, deadline=0.01) == msgspec.structs.replace(plan(1), truncated=True)


def test_a_process_that_dies_with_a_plan_at_hand_is_a_warning() -> None:
    with planner("is-killed-later") as dying:
        warning = PlanWarning(
            object="Plan plan-1", message="the planner's process was killed by signal 9; the best plan so far is used"
        )
        assert dying.plan(EMPTY, 0, deadline=60) == msgspec.structs.replace(plan(1), truncated=True, warnings=[warning])


@pytest.mark.parametrize(
    ("way", "sentence"),
    [
        ("hangs-at-once", "the planner had no plan 0.4 s after it began"),
        ("dies-at-once", "the planner's process ended with exit code 3"),
        ("raises", "the planner failed: ValueError in searches.py:{line}: no such column"),
        ("has-nothing", "the planner failed: it made no plan"),
    ],
)
def test_without_any_plan_the_cycle_fails_with_the_reason(way: str, sentence: str) -> None:
    with planner(way) as failing, pytest.raises(Refusal) as refusal:
        failing.plan(EMPTY, 0, deadline=SOON if way == "hangs-at-once" else 60, grace=SOON)
    assert str(refusal.value) == sentence.format(line=_line_of('ValueError("no such'))


def test_a_failed_process_is_replaced() -> None:
    with planner("dies-at-once") as dying:
        for _ in range(2):
            with pytest.raises(Refusal, match="exit code 3"):
                dying.plan(EMPTY, 0, deadline=60)


def _line_of(text: str) -> int:
    from tests.cycle import searches

    assert searches.__file__ is not None
    with open(searches.__file__, encoding="utf-8") as source:
        return next(number for number, line in enumerate(source, start=1) if text in line)


def test_an_interrupt_is_for_the_parent_alone() -> None:
    with planner("finishes") as starting:
        starting.start()
        assert starting.pid is not None
        os.kill(starting.pid, signal.SIGINT)  # it is still importing
        first = starting.pid
        assert (starting.plan(EMPTY, 7, deadline=60), starting.pid) == (plan(2, 7), first)


def test_a_process_whose_parent_is_gone_ends_without_a_word() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.cycle.searches", "finishes", str(theirs.fileno())],
            pass_fds=[theirs.fileno()], stderr=subprocess.PIPE,
        )  # fmt: skip
    assert wait_readable(ours, 60)
    ours.close()  # with what it said unread, so that it finds the connection reset
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, b"")


def test_where_the_checker_does_not_pass_the_best_plan_an_earlier_one_is_used_and_a_loud_warning_says_so(
    tmp_path: Path,
) -> None:
    state = World(tmp_path / "cluster.yaml").node("n").budget("org:a", 8).policy().run("r", 8).save()
    lake = Lake(tmp_path / "lake")
    with planner("lying") as lying:
        found = run_cycle(StateFile(state, unix(T0)), unix(T0), lake, lying).plan
    assert found is not None
    (warning,) = found.warnings
    assert (found.truncated, [each.run_key for each in found.leases]) == (True, [("default", "r")])
    assert warning.object == "Plan 20260101T000000Z"
    assert warning.message.startswith("THE PLANNER'S BEST PLAN IS WRONG, which the checker found: Run default/r: ")
    (stored,) = StateFile(state, unix(T0)).read().plans
    assert stored.status.truncated
    assert [each.message for each in stored.status.warnings] == [warning.message]
