"""Money is exact to the second (spec §3.5, §3.6): on random histories ledgers are what a slow reading makes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import duckdb
import msgspec
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from jobtree.check import Before, check
from jobtree.world.memory import balances
from jobtree.world.plan import Plan, Segment
from tests.history.facts import history, leases
from tests.history.histories import histories
from tests.history.play import Played, Step, play, snapshot_of
from tests.support.documents import merge
from tests.support.effort import examples
from tests.support.times import unix

CHARGES: Final = (Path(__file__).parent / "charges.sql").read_text(encoding="utf-8")


@pytest.mark.slow
@examples(60)
@given(histories())
def test_every_second_is_as_a_slow_reading_has_it(steps: list[Step]) -> None:
    cycles = play(steps)
    slow = history(cycles)
    slow.live()

    paid = [lease.name for lease in slow.leases if lease.payer is not None]
    assert told(cycles) == {name: slow.said.get(name, []) for name in paid}
    assert usage(cycles[-1]) == counted(cycles[-1])


@examples(15)
@given(histories())
def test_the_checker_misses_no_second(steps: list[Step]) -> None:
    for cycle in play(steps):
        before = Before.of(cycle.snapshot, cycle.plan.at)
        for spoilt in in_other_seconds(cycle.plan):
            assert check(cycle.snapshot, spoilt, before) != []


@pytest.mark.slow
@examples(20)
@given(histories(), st.integers(0, 60))
def test_pruned_leases_change_nothing_but_that_they_are_gone(steps: list[Step], retention: int) -> None:
    kept, pruned = play(steps), play(keeping(steps, f"{retention}s"))

    assert [forgetful(cycle.plan) for cycle in pruned] == [forgetful(cycle.plan) for cycle in kept]
    for one, other in zip(kept, pruned, strict=True):
        assert counted(other) == counted(one)


@examples(5)
@given(histories())
def test_nor_where_their_balances_need_many_objects(steps: list[Step]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(balances, "MOST", 1)  # so another begins whenever leases go
        patch.setattr(balances, "_LADDER", ())
        kept, pruned = play(steps), play(keeping(steps, "0s"))

    assert [forgetful(cycle.plan) for cycle in pruned] == [forgetful(cycle.plan) for cycle in kept]
    assert [counted(cycle) for cycle in pruned] == [counted(cycle) for cycle in kept]
    event(f"{sum(each['metadata']['name'].startswith('jobtree-balances') for each in pruned[-1].after)} objects")


def keeping(steps: list[Step], retention: str) -> list[Step]:
    """The same history under Policies that keep closed leases for so long."""
    patch = {"spec": {"retention": {"leases": retention}}}
    return [
        replace(step, put=[merge(each, patch) if each["kind"] == "Policy" else each for each in step.put])
        for step in steps
    ]


def forgetful(plan: Plan) -> Plan:
    """A plan without what it prunes."""
    return msgspec.structs.replace(plan, pruned=[], settled=[])


def told(cycles: Sequence[Played]) -> dict[str, list[tuple[str, int]]]:
    """What the ledgers say: lease → (class, rate) in every second from its start to its end, or the last cycle's."""
    found = {}
    for lease in leases(cycles):
        status = lease["status"]
        end = unix(status["ended"]) if status.get("closed") else cycles[-1].at + 1
        seconds: list[tuple[str, int]] = []
        for segment in status["funding"]:
            last = min(end, unix(segment["to"])) if "to" in segment else end
            rate = 0 if segment["class"] == "unfunded" else round(1000 * segment.get("rate", 0))
            seconds += [(segment["class"], rate)] * (last - unix(segment["from"]))
        if lease["spec"].get("paidBy"):
            found[lease["metadata"]["name"]] = seconds
    return found


def usage(cycle: Played) -> dict[tuple[str, str], float]:
    """GPU-seconds consumed in the present window, by envelope, as the plan says of the moment of the cycle."""
    return {
        (update.name, each.name): each.gpu_seconds_consumed
        for update in cycle.plan.budgets
        for each in update.status.envelopes
    }


def counted(cycle: Played) -> dict[tuple[str, str], float]:
    """The same, by SQL over the leases as they are after the cycle."""
    tables = snapshot_of(cycle.after).tables
    with duckdb.connect() as database:
        for name in ("leases", "envelopes", "seen_discounts", "balances"):
            database.register(name, tables[name])
        rows = database.execute(CHARGES, {"now": cycle.at}).fetchall()
    return {(budget, envelope): milli / 1000 for budget, envelope, milli in rows}


def in_other_seconds(plan: Plan) -> Iterator[Plan]:
    """The plan without, or with at another second, one change of class since the last cycle."""
    for number, segment in enumerate(plan.segments):
        if segment.since < plan.at:
            for others in ((), (moved(segment, -1),), (moved(segment, 1),)):
                segments = [*plan.segments[:number], *others, *plan.segments[number + 1 :]]
                yield msgspec.structs.replace(plan, segments=segments)


def moved(segment: Segment, by: int) -> Segment:
    """The same change some seconds later."""
    return msgspec.structs.replace(segment, since=segment.since + by)
