"""Why nobody pays for what runs: told once, with what would have it paid again, by everything that shows a run."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.effort import examples
from tests.support.times import moment, rfc3339
from tests.support.worlds import Cycle, World

MEANS = "This work runs on, charged to nobody and first to be cut"
STOPPED = f"org-a/gpus stopped paying for 8 GPUs at {moment('+1h')}"


def own(**spec: Any) -> World:
    """Run r of org:a, on 8 GPUs of its own envelope."""
    world = World().domain("A", nodes=4).budget("org:a", 16, spec=spec).budget("org", 16, scope="subtree")
    return world.run("r", 8)


def envelope(**fields: Any) -> Callable[[World], Any]:
    made = {**doc.envelope(16), **fields}
    return lambda world: world.edit("Budget", "org-a", spec={"envelopes": [made]})


def capped(kind: str, **cap: Any) -> Callable[[World], Any]:
    made = {"name": "all", **cap} | ({"envelopes": ["gpus"]} if kind == "aggregateCaps" else {})
    return lambda world: world.edit("Budget", "org-a", spec={kind: [made]})


def above(world: World) -> World:
    return world.edit("Budget", "org", spec={"envelopes": [doc.envelope(4, scope="subtree")]})


LOST: dict[str, tuple[Callable[[World], Any], str, str]] = {
    "concurrency": (
        envelope(concurrency=3),
        "5 GPUs short at org-a/gpus (0 of 3 in use)",
        "org-a/gpus pays again once spec.envelopes[gpus].concurrency of Budget org-a is 8 or more",
    ),
    "hours": (
        envelope(maxGPUHours=1),
        "nothing is left of the 1 GPU-hour of org-a/gpus",
        "org-a/gpus pays again once spec.envelopes[gpus].maxGPUHours of Budget org-a is more than what is spent",
    ),
    "window over": (
        envelope(end=moment("+30m")),
        f"its window ended at {moment('+30m')}",
        "org-a/gpus pays again once spec.envelopes[gpus].end of Budget org-a is later",
    ),
    "window to come": (
        envelope(start=moment("+9h")),
        f"its window opens at {moment('+9h')}",
        f"org-a/gpus pays again from {moment('+9h')} on",
    ),
    "envelope renamed": (
        envelope(name="others"),
        "there is no Budget org-a of org:a with an envelope gpus for H100-80GB any more",
        "org-a/gpus pays again once there is one",
    ),
    "Budget deleted": (
        lambda world: world.delete("Budget", "org-a"),
        "there is no Budget org-a of org:a with an envelope gpus for H100-80GB any more",
        "org-a/gpus pays again once there is one",
    ),
    "aggregate cap": (
        capped("aggregateCaps", maxConcurrency=6),
        "2 GPUs short at the aggregate cap org-a/all (0 of 6 in use)",
        "org-a/gpus pays again once spec.aggregateCaps[all].maxConcurrency of Budget org-a is 8 or more",
    ),
    "use cap": (
        capped("useCaps", maxConcurrency=0),
        "8 GPUs short at the use cap org-a/all (0 of 0 in use)",
        "org-a/gpus pays again once spec.useCaps[all].maxConcurrency of Budget org-a is 8 or more",
    ),
    "subtree": (
        above,
        "4 GPUs short at the subtree of org/gpus (0 of 4 in use)",
        "org-a/gpus pays again once spec.envelopes[gpus].concurrency of Budget org is 8 or more",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("edit", "why", "again"), LOST.values(), ids=LOST)
def test_every_way_to_lose_a_payer_is_told(edit: Callable[[World], Any], why: str, again: str) -> None:
    world = own()
    world.cycle()
    edit(world)
    cycle = world.cycle("+1h")

    words = f"8 GPUs: 8 unfunded. {STOPPED}: {why}. {MEANS}; {again}."
    assert condition(cycle, "r") == ("Unfunded", words)
    assert told(cycle) == [("r", moment("+1h"), False, words.partition(". ")[2])]
    assert world.runs("events", "r", at="+2h").ok().out.splitlines()[-1].split(maxsplit=3) == [
        moment("+1h"), "r", "Unfunded", words,
    ]  # fmt: skip
    for command in ("watch", "plan", "explain"):
        assert f"reason: Unfunded: {words}\n" in world.runs(command, "r", at="+2h").ok().out
    assert condition(world.cycle("+2h"), "r") == ("Unfunded", words)


def condition(cycle: Cycle, run: str) -> tuple[str, str]:
    said = cycle.condition(run, "Admitted")
    return said["reason"], said["message"]


def told(cycle: Cycle) -> list[tuple[str, str, bool, str]]:
    return [(each.name, rfc3339(each.since), each.paid, each.message) for each in cycle.plan.turns]


def test_a_payer_that_comes_back_is_told_with_the_second() -> None:
    world = own()
    world.cycle()
    envelope(concurrency=3)(world)
    world.cycle("+1h")
    envelope(concurrency=8)(world)
    cycle = world.cycle("+2h")

    words = f"org-a/gpus pays for 8 GPUs again, from {moment('+2h')} on."
    assert (condition(cycle, "r"), told(cycle)) == (("Funded", "8 GPUs: 8 owned."), [("r", moment("+2h"), True, words)])
    assert cycle.output.out.splitlines() == [
        f"Plan 20260101T020000Z for {moment('+2h')}: 0 runs start, 0 wait, 1 run is paid again; 7 writes",
        f"Run default/r: {words}",
    ]
    assert [line.split(maxsplit=3)[2:] for line in world.runs("events", "r", at="+3h").ok().out.splitlines()[-2:]] == [
        ["Unfunded", f"{STOPPED}."], ["Funded", words],
    ]  # fmt: skip
    assert world.cycle("+3h").plan.turns == []


def test_an_hour_cap_that_runs_out_is_told_with_its_own_second() -> None:
    world = World().domain("A").budget("org:a", 8, maxGPUHours=200).run("r", 8)
    world.cycle()
    cycle = world.cycle("+30h")
    said = (
        f"org-a/gpus stopped paying for 8 GPUs at {moment('+25h')}: nothing is left of the 200 GPU-hours of org-a/gpus."
    )
    assert said in condition(cycle, "r")[1]


def test_recall_names_what_is_in_use_nearer() -> None:
    world = World().domain("A", nodes=4).budget("org:b", 16).run("far", 16, owner="org:b:x")
    world.cycle()
    cycle = world.run("near", 8, owner="org:b").run("wide", 8, owner="org:b").cycle("+1h")
    assert (cycle.started, condition(cycle, "far")[0]) == (["near", "wide"], "Unfunded")
    assert ": 16 GPUs short at org-b/gpus (16 of 16 in use). " in condition(cycle, "far")[1]


def test_groups_that_lose_it_at_other_times_are_told_apart() -> None:
    elastic = {"minTotalGPUs": 8, "maxTotalGPUs": 24, "stepGPUs": 8}
    world = World().domain("A", nodes=3).budget("org:a", 24)
    world.run("r", 24, by=8, malleable=elastic).cycle()
    world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(16)]}).cycle("+1h")
    cycle = world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(9)]}).cycle("+2h")
    assert condition(cycle, "r") == (
        "PartlyUnfunded",
        (
            f"24 GPUs: 8 owned, 16 unfunded. {STOPPED}, org-a/gpus stopped paying for 8 GPUs at {moment('+2h')}:"
            f" 15 GPUs short at org-a/gpus (8 of 9 in use). {MEANS};"
            " org-a/gpus pays again once spec.envelopes[gpus].concurrency of Budget org-a is 24 or more."
        ),
    )


def test_an_index_of_an_array_is_told_as_any_run() -> None:
    world = World().domain("A").budget("org:a", 8).run("sweep", 4, spec={"array": {"count": 2}})
    world.cycle()
    cycle = world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(4)]}).cycle("+1h")
    words = (
        f"4 GPUs: 4 unfunded. org-a/gpus stopped paying for 4 GPUs at {moment('+1h')}: 4 GPUs short at org-a/gpus"
        f" (4 of 4 in use). {MEANS};"
        " org-a/gpus pays again once spec.envelopes[gpus].concurrency of Budget org-a is 8 or more."
    )
    assert [each.get("message") for each in cycle.status("sweep")["indices"]] == [None, words]
    assert f"reason: Unfunded: {words}\n" in world.runs("watch", "sweep-1", at="+2h").ok().out
    assert f"Unfunded   {words}\n" in world.runs("events", "sweep-1", at="+2h").ok().out


def test_what_started_unfunded_says_so() -> None:
    cycle = World().domain("A").run("fill", 4, funding={"opportunistic": True}).cycle()
    assert condition(cycle, "fill") == ("Unfunded", f"4 GPUs: 4 unfunded. 4 GPUs started unfunded. {MEANS}.")


ASKED = re.compile(r"spec\.(\w+)\[(\w+)\]\.(\w+) of Budget (\S+) is (\d+) or more")


@given(
    st.lists(st.sampled_from([1, 2, 4, 6, 8]), min_size=2, max_size=5),
    st.integers(1, 20),
    st.none() | st.integers(1, 20),
    st.none() | st.integers(0, 20),
)
@examples(40)
def test_what_is_named_brings_the_payer_back(widths: list[int], own: int, all_: int | None, use: int | None) -> None:
    """Whatever limits are lowered, and whoever comes first: the rises that a run is told pay for it."""
    world = World().domain("A", nodes=4).budget("org:a", 32)
    for number, width in enumerate(widths):
        world.run(f"r{number}", width)
    world.cycle()
    caps: dict[str, list[Document]] = {"envelopes": [doc.envelope(own)]}
    if all_ is not None:
        caps["aggregateCaps"] = [{"name": "all", "envelopes": ["gpus"], "maxConcurrency": all_}]
    if use is not None:
        caps["useCaps"] = [{"name": "use", "maxConcurrency": use}]
    cycle = world.edit("Budget", "org-a", spec=caps).cycle("+1h")
    before = world.path.read_text(encoding="utf-8")
    for number in range(len(widths)):
        asked = ASKED.findall(condition(cycle, f"r{number}")[1])
        assert bool(asked) == ("unfunded" in cycle.funding(f"r{number}"))
        if asked:
            rises = {(part, name): {field: int(limit)} for part, name, field, _, limit in asked}
            raised = {part: [{**each, **rises.get((part, each["name"]), {})} for each in caps[part]] for part in caps}
            world.edit("Budget", "org-a", spec=raised)
            assert world.cycle("+2h").funding(f"r{number}") == {"owned": widths[number]}
            world.path.write_text(before, encoding="utf-8")
