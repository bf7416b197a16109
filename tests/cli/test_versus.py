"""`explain RUN --versus OTHER`: the two side by side, the plan with the one instead of the other, and the reason."""

import msgspec
import pytest

from tests.support.times import T0
from tests.support.worlds import World


def compared(world: World, run: str, other: str, at: str = T0) -> str:
    return world.runs("explain", run, "--versus", other, at=at).ok().out


def reason(world: World, run: str, other: str, at: str = T0) -> str:
    return compared(world, run, other, at).splitlines()[-1]


def test_the_one_is_worth_more() -> None:
    world = World().node("n").budget("org:a", 64).run("old", 4, created="-2d").run("big", 8)

    assert compared(world, "big", "old") == (
        "                     default/big            default/old\n"
        "fate                 waits                  starts in the next cycle\n"
        "owner                org:a                  org:a\n"
        "created              2025-12-31T23:59:59Z   2025-12-30T00:00:00Z\n"
        "GPUs                 8                      4\n"
        "weight of a GPU      1                      3\n"
        "GPU-days of weight   8                      12\n"
        "\n"
        "1 domain is open to both, with 4 GPUs free, 4 of them in one; 1 cap that both count against with room left\n"
        "\n"
        "STAGE           AS PLANNED   INSTEAD   UNIT\n"
        "starts          12           8         GPU-days of weight\n"
        "overdraw        0            0         GPUs\n"
        "opportunistic   0            0         GPU-days of weight\n"
        "payers          0            0         GPUs × rank\n"
        "domains         1            1         domains of runs\n"
        "holes           16           0         squared free GPUs of domains\n"
        "\n"
        "Because starting default/old is worth 4 GPU-days of weight more in stage starts: 12 against 8.\n"
    )
    assert reason(world, "old", "big") == reason(world, "big", "old")


def test_third_runs_are_named() -> None:
    world = World().node("n").budget("org:a", 64).run("whole", 8, created="-1h").run("half", 4).run("rest", 4)

    assert reason(world, "whole", "half") == (
        "Because starting default/whole is worth 0.33 GPU-days of weight more in stage starts: 8.33 against 8. "
        "default/rest would start too."
    )


def test_they_do_not_compete() -> None:
    world = World().node("n").budget("org:a", 4).budget("org:b", 64).run("x", 4, owner="org:b").run("y", 8)

    assert reason(world, "x", "y") == (
        "They do not compete: even with default/x held back, default/y waits. "
        "Asks for 8 GPUs: 4 GPUs short at org-a/gpus (0 of 4 in use)."
    )


def test_a_cap_that_both_need() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 8).run("x", 8, created="-1h").run("y", 8)
    printed = compared(world, "y", "x")

    assert "cap of both: org-a/gpus: 8 of 8 GPUs taken, default/y would count 8\n" in printed
    assert reason(world, "y", "x") == (
        "Because starting default/x is worth 0.33 GPU-days of weight more in stage starts: 8.33 against 8."
    )


def test_what_runs_is_not_given_up() -> None:
    world = World().node("n").budget("org:a", 64).run("r", 8)
    world.cycle()
    world.run("s", 8, created="-3d")

    assert reason(world, "s", "r", "+1m") == (
        "Because default/r runs: what runs is not given up for what waits. Were it suspended, default/s could start."
    )


def test_among_equals_the_older_is_started() -> None:
    world = World().node("n").budget("org:a", 64).run("x", 8, created="-9d").run("y", 8, created="-8d")

    assert reason(world, "x", "y") == (
        "Both plans are worth the same in every stage; "
        "among equals the heavier, then the older, then the first by name is started."
    )


def test_where_there_is_nothing_to_choose_that_is_said() -> None:
    world = World().domain("A", nodes=2).budget("org:a", 64).run("x", 8).run("y", 8).run("big", 32)
    world.run("other", 40).run("after", 1, follow={"after": ["x"]}).run("off", 1, state="Suspended")

    assert reason(world, "x", "y") == "Both have GPUs after the next cycle: there is nothing to choose."
    assert reason(world, "big", "other").startswith("Both wait, neither because of the other. default/big: Asks for 32")
    assert reason(world, "after", "x") == ("default/after is not weighed: 1 of 1 upstream run outstanding: x.")
    assert reason(world, "off", "x") == "default/off is not weighed: it is Pending."


def test_as_data() -> None:
    world = World().node("n").budget("org:a", 64).run("old", 4, created="-2d").run("big", 8)
    found = msgspec.json.decode(world.runs("explain", "big", "--versus", "old", "-o", "json", at=T0).ok().out)

    assert list(found) == ["runs", "because", "room", "stages"]
    assert found["runs"]["default/old"]["GPU-days of weight"] == 12.0
    assert found["stages"][0] == {
        "stage": "starts",
        "planned": 12 * 86400,
        "instead": 8 * 86401,
        "unit": "GPU-seconds of weight",
    }


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ("big", "error: Run default/big is compared with itself; say another run after --versus"),
        ("none", "error: there is no run called none in any namespace; `kubectl runs state --all` lists them all"),
    ],
)
def test_it_takes_two(other: str, words: str) -> None:
    world = World().node("n").budget("org:a", 64).run("big", 8)
    assert world.runs("explain", "big", "--versus", other, at=T0).refused() == words
