"""Chains of cycles on small fleets: after people have done, every promise is kept as it was told (spec §5, §6, §9).

Windows that open and close, maintenance, gangs, standbys, elastic, opportunistic and array runs, and cuts with draws.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cronjobs import lottery
from exporters.plans import planjson
from exporters.writes.writes import writes_for
from jobtree.api import Time
from jobtree.check import check
from jobtree.cluster import edits
from jobtree.cluster.secret_text import secret_text
from jobtree.world.memory import seen
from jobtree.world.tables.snapshot import take
from planner import plan
from planner.effort import USUAL, Effort
from tests.history.play import Cluster, Played, Step
from tests.life import streams
from tests.support import documents as doc
from tests.support import invariants
from tests.support.documents import Document, merge
from tests.support.drawing import Draw
from tests.support.effort import examples
from tests.support.times import rfc3339, unix
from tests.support.worlds import ORIGIN

TAIL = 8
"""Cycles in which nobody does anything."""


class Whole(Cluster):
    """A state file in memory whose cycles search to the end, and draw."""

    effort = USUAL

    def secret(self, name: str, key: str) -> str | None:
        """A text of a Secret in the planner's namespace."""
        found = (each for each in self.text.documents() if each.key[1:] == ("Secret", seen.NAMESPACE, name))
        return next((secret_text(each.raw, key) for each in found), None)

    def cycle(self, at: int) -> Played:
        """One cycle as the program has it."""
        before, read = self.documents(), self.read()
        snapshot = take(read, at)
        snapshot = replace(snapshot, lot=lottery.lot(self, read, at))  # type: ignore[arg-type]
        made = plan(snapshot, at, self.effort)
        assert [str(violation) for violation in check(snapshot, made)] == []
        chain = lottery.published(self, read, made, ORIGIN)  # type: ignore[arg-type]
        edits.apply(self.text, [*chain, *writes_for(read, made, planjson.encode(made))], Time(at))
        return Played(at, before, snapshot, made, self.documents())


@st.composite
def worlds(draw: Draw) -> list[Document]:
    """A fleet with budgets and runs."""
    at = streams.START
    minutes = st.integers(1, 90).map(lambda minute: rfc3339(at + 60 * minute))
    shut = {"selector": {"fabric.domain": draw(st.sampled_from("ab"))}, "start": draw(minutes)}
    shut["end"] = rfc3339(unix(shut["start"]) + 1200)
    policy = {
        "lottery": {"term": draw(st.sampled_from(["5m", "15m"]))},
        "reservations": {"patience": draw(st.sampled_from(["10m", "2h"])), "notice": "5m"},
        "maintenance": draw(st.sampled_from([[], [], [shut]])),
    }
    world = [streams.made(doc.policy(**policy), at), *(streams.node(name, at) for name in streams.NODES)]
    for owner in streams.OWNERS:
        made = draw(streams.budgets(owner, at))
        edge = draw(st.sampled_from([None, None, "start", "end"]))
        envelopes = [{**each, **({edge: draw(minutes)} if edge else {})} for each in made["spec"]["envelopes"]]
        for each in envelopes if edge else ():
            each.pop("maxGPUHours", None)  # it may be more than a window has
        world.append(merge(made, {"spec": {"envelopes": envelopes}}))
    names = draw(st.sets(st.sampled_from(streams.RUNS), min_size=5).map(sorted))
    return world + [draw(_run(name, at)) for name in names]


@st.composite
def _run(draw: Draw, name: str, at: int) -> Document:
    limit = draw(st.sampled_from([None, "7m", "20m", "1h"]))
    gang = {"gang": {"name": "pair", "size": 2}} if name in {"f0", "f2"} and draw(st.booleans()) else {}
    made = draw(streams.runs(name, at))
    return merge(made, {"spec": {**gang, **({"runtime": {"timeLimit": limit}} if limit else {})}})


@st.composite
def chains(draw: Draw) -> list[Step]:
    """The cycles in which something happens."""
    steps = [Step(streams.START, put=draw(worlds()))]
    for _ in range(draw(st.integers(0, 2))):
        since, at = steps[-1].at, steps[-1].at + draw(st.sampled_from([60, 300]))
        change = st.one_of(streams.on_nodes(at), streams.on_runs(since, at), streams.on_budgets(at))
        done = draw(st.lists(change, max_size=3))
        parts = {key: [each for one in done for each in one.get(key, ())] for key in ("put", "patches", "gone")}
        steps.append(Step(at, **parts))
    return steps


def standing(documents: Sequence[Document]) -> dict[str, Document]:
    """Statuses of promises that stand, by name."""
    found = (each for each in documents if each["kind"] == "Reservation" and each["status"]["state"] == "Pending")
    return {each["metadata"]["name"]: each["status"] for each in found}


def next_at(documents: Sequence[Document], at: int) -> int:
    """When the next promise is due, an hour from now at most; a minute from now where none is."""
    due = [unix(each["earliestStart"]) for each in standing(documents).values()]
    return min((each for each in due if at < each < at + 3600), default=at + 60)


def broken(cycle: Played) -> Iterator[str]:
    """Promises that a cycle did not keep as they were told, though nobody had done anything."""
    after: dict[str, Any] = {d["metadata"]["name"]: d["status"] for d in cycle.after if d["kind"] == "Reservation"}
    leases = (each for each in cycle.before if each["kind"] == "Lease")
    runs = {lease["metadata"]["name"]: f"default/{_run_of(lease)}" for lease in leases}
    lost = {runs[closure.name]: closure for closure in cycle.plan.closures}
    for name, told in standing(cycle.before).items():
        now, due = after[name], unix(told["earliestStart"])
        if now["state"] == "Failed":
            yield f"{name} of {told['earliestStart']} failed: {now['message']}"
        elif unix(now["earliestStart"]) > due or (due <= cycle.at and now["state"] == "Pending"):
            yield f"{name} of {told['earliestStart']} is of {now['earliestStart']}: {now['history'][-1:]}"
        named = {each["run"] for each in told["forecast"].get("conflictSet", [])}
        for run, closure in lost.items():
            mine = closure.made_room_for == f"default/{name}" and closure.reason == "Lottery"
            if mine and run not in named:
                yield f"{run} was drawn for {name}, which named {sorted(named)}"


def _run_of(lease: Document) -> str:
    reference = lease["spec"]["runRef"]
    return f"{reference['name']}-{reference['index']}" if "index" in reference else str(reference["name"])


class Busy(Whole):
    """The same, planned as where many wait: of all known times two are looked at."""

    effort = Effort(exact=0, fewest_moments=2, moments_of_many=2)


@pytest.mark.slow
@examples(100)
@given(chains())
def test_what_is_promised_is_kept_while_nobody_does_anything(steps: list[Step]) -> None:
    cluster = Whole()
    for step in steps:
        cluster.change(step)
        cycle = cluster.cycle(step.at)
        invariants.check(cycle.before, cycle.after, step.at)
    for _ in range(TAIL):
        cycle = cluster.cycle(next_at(cycle.after, cycle.at))
        invariants.check(cycle.before, cycle.after, cycle.at)
        assert [*broken(cycle)] == []


@pytest.mark.slow
@examples(40)
@given(chains())
def test_where_many_wait_every_cycle_keeps_the_rules(steps: list[Step]) -> None:
    cluster = Busy()
    for step in steps:
        cluster.change(step)
        cycle = cluster.cycle(step.at)
        invariants.check(cycle.before, cycle.after, step.at)
    for _ in range(TAIL):
        cycle = cluster.cycle(next_at(cycle.after, cycle.at))
        invariants.check(cycle.before, cycle.after, cycle.at)
