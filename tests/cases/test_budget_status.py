"""What a Budget says of itself: use by class, what is committed, what is left, and whether its caps hold (spec §1)."""

from typing import Any

from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.times import moment
from tests.support.worlds import State, World

HOUR = 3600


def told(state: State, budget: str) -> Document:
    """The first envelope's record in a Budget's status, zeros left out."""
    (usage,) = state.get("Budget", budget)["status"]["envelopes"]
    return {key: value for key, value in usage.items() if value and key != "name"}


def healthy(state: State, budget: str = "org-a") -> tuple[str, str, str]:
    (condition,) = state.get("Budget", budget)["status"]["conditions"]
    return condition["status"], condition["reason"], condition["message"]


def test_every_class_and_every_figure() -> None:
    world = (
        World()
        .domain("A", nodes=4)
        .policy(creditRates={doc.FLAVOR: 2})
        .budget("org:a", 24, maxCredits=9000, sharing="family", lending={"allow": True})
        .run("own", 4, by=4, spares=2, limit="10h")
        .run("kid", 3, owner="org:a:x")
        .run("loan", 2, owner="team", limit="30h", funding={"allowBorrow": True, "sponsors": ["org:a"]})
    )
    cycle = world.cycle()
    hours = 5 * 10 + 3 * 24 + 2 * 24
    assert told(cycle, "org-a") == {
        "ownedGPUs": 4, "sharedGPUs": 3, "borrowedGPUs": 2, "spareGPUs": 2, "headroomGPUs": 14,
        "gpuHoursCommitted": hours, "creditsCommitted": 2 * hours, "headroomCredits": 9000 - 2 * hours,
    }  # fmt: skip
    later = world.cycle("+4h")
    used, hours = 10 * 4, 5 * 6 + 3 * 24 + 2 * 24
    assert told(later, "org-a") == {
        "ownedGPUs": 4, "sharedGPUs": 3, "borrowedGPUs": 2, "spareGPUs": 2, "headroomGPUs": 14,
        "gpuSecondsConsumed": used * HOUR, "gpuHoursConsumed": used, "gpuHoursCommitted": hours,
        "creditsConsumed": 2 * used, "creditsCommitted": 2 * hours, "headroomCredits": 9000 - 2 * (used + hours),
    }  # fmt: skip
    printed = world.usage("org-a", at="+4h")
    (usage,) = later.get("Budget", "org-a")["status"]["envelopes"]
    assert printed == {"budget": "org-a", "owner": "org:a", "kind": "Envelope", **usage}


def test_a_subtree_has_left_what_its_descendants_leave() -> None:
    world = (
        World().domain("A", nodes=2).budget("org", 12, scope="subtree", maxGPUHours=500).budget("org:a", 16).run("r", 4)
    )
    cycle = world.cycle()
    assert told(cycle, "org") == {"headroomGPUs": 8, "headroomGPUHours": 500 - 4 * 24}
    assert told(cycle, "org-a") == {"ownedGPUs": 4, "headroomGPUs": 8, "gpuHoursCommitted": 96}
    assert told(world.cycle("+10h"), "org")["headroomGPUHours"] == 500 - 4 * 34


def test_an_aggregate_cap_has_no_more_room_than_its_envelopes() -> None:
    def room(**cap: Any) -> Document:
        envelopes = [doc.envelope(6, "one"), doc.envelope(4, "two", sharing="none")]
        caps = [{"name": "all", "envelopes": ["one", "two"], **cap}]
        world = (
            World().domain("A", nodes=2).budget("org:a", envelopes=envelopes, spec={"aggregateCaps": caps}).run("r", 3)
        )
        (usage,) = world.cycle().get("Budget", "org-a")["status"]["aggregateCaps"]
        return {key: value for key, value in usage.items() if key.startswith("headroom")}

    assert room(maxGPUHours=100) == {"headroomGPUs": 7, "headroomGPUHours": 28}
    assert room(maxConcurrency=5) == {"headroomGPUs": 2}
    assert room(maxConcurrency=50) == {"headroomGPUs": 7}


def edited(world: World, **envelope: Any) -> World:
    return world.edit("Budget", "org-a", spec={"envelopes": [doc.envelope(**envelope)]})


def test_a_cap_below_its_use_is_named_since_when_and_with_its_number() -> None:
    world = World().domain("A").budget("org:a", 8, maxGPUHours=800).run("r", 3).run("s", 2)
    world.cycle()
    assert healthy(world.state()) == ("True", "WithinCaps", "Every cap holds.")
    edited(world, concurrency=4, maxGPUHours=800)
    assert healthy(world.cycle("+1h")) == (
        "False", "Overcommitted", "Envelope gpus has work beyond its caps: 2 GPUs are unfunded until there is room."
    )  # fmt: skip
    (condition,) = world.cycle("+2h").get("Budget", "org-a")["status"]["conditions"]
    assert condition["lastTransitionTime"] == moment("+1h")
    edited(world, concurrency=8, maxGPUHours=800)
    (condition,) = world.cycle("+3h").get("Budget", "org-a")["status"]["conditions"]
    assert (condition["status"], condition["lastTransitionTime"]) == ("True", moment("+3h"))


def test_hours_and_credits_below_what_was_spent_are_named_when_nothing_runs_too() -> None:
    world = World().domain("A").policy(creditRates={doc.FLAVOR: 3}).budget("org:a", 8, maxGPUHours=800).run("r", 3)
    world.cycle()
    world.runs("complete", "r", at="+10h").ok()
    assert healthy(world.cycle("+10h"))[1] == "WithinCaps"
    edited(world, concurrency=8, maxGPUHours=20)
    assert healthy(world.cycle("+11h")) == (
        "False", "Overcommitted", "Envelope gpus has 20 GPU-hours, and 30 are spent."
    )  # fmt: skip
    edited(world, concurrency=8, maxCredits=80.5)
    assert healthy(world.cycle("+12h"))[2] == "Envelope gpus has 80.5 credits, and 90 are spent."
    caps = [{"name": "all", "envelopes": ["gpus"], "maxGPUHours": 29}]
    edited(world, concurrency=8).edit("Budget", "org-a", spec={"aggregateCaps": caps})
    assert healthy(world.cycle("+13h"))[2] == "Aggregate cap all has 29 GPU-hours, and 30 are spent."


def test_work_beyond_a_closed_window_is_no_breach() -> None:
    world = World().domain("A").budget("org:a", 8, end=moment("+1h")).run("r", 3)
    world.cycle()
    assert told(world.cycle("+2h"), "org-a") == {
        "unfundedGPUs": 3, "gpuSecondsConsumed": 3 * HOUR, "gpuHoursConsumed": 3
    }  # fmt: skip
    assert healthy(world.state())[1] == "WithinCaps"


def test_usage_is_printed_though_a_run_that_holds_gpus_cannot_be_read() -> None:
    world = World().domain("A").budget("org:a", 8).run("r", 3, limit="9h")
    world.cycle()
    world.edit("Run", "r", spec={"unknown": 1})
    assert world.usage("org-a", at="+1h")["ownedGPUs"] == 3


def test_headroom_of_an_aggregate_cap_is_exact_to_the_thousandth() -> None:
    both = {"name": "both", "envelopes": ["a", "b", "c"]}
    rooms = [{**doc.envelope(gpus), "name": name} for name, gpus in (("a", 4), ("b", 1), ("c", 3))]
    world = World().policy(spares={"discount": 0.333}).domain("A", nodes=2)
    world.budget("org:a", envelopes=rooms, spec={"aggregateCaps": [both | {"maxConcurrency": 100}]})
    world.run("r", 3, pods=3, spares=1)

    (cap,) = world.cycle().get("Budget", "org-a")["status"]["aggregateCaps"]

    assert cap["headroomGPUs"] == 4.001
