"""Estimates of what holds no promise, where many wait (spec §5): one queue beside what is known and promised."""

from hypothesis import given
from hypothesis import strategies as st

from jobtree.world.tables.after import after
from planner.forecast.durations import Durations, Lasted
from planner.forecast.fluid import Ask, Fluid, Held, grid
from planner.forecast.lanes import LaneBook
from planner.planning import plan
from planner.state.derive import state_of
from policies.inputs.runs import read_runs
from tests.support.effort import examples
from tests.support.times import moment, unix
from tests.support.worlds import Cycle, World

T0 = unix("+0s")


def queue(waiting: int) -> World:
    """Two nodes that one run fills for an hour, and runs of a node and an hour each behind it; four hold promises."""
    world = World().policy(reservations={"maxHeld": 4, "patience": "14d"}).domain("d1", 2).budget("org:a", 16)
    world.run("first", 16, limit="1h", created="-2h")
    for number in range(waiting):
        world.run(f"next-{number:03}", 8, limit="1h", created=moment(f"-{waiting - number}s"))
    return world


def told(cycle: Cycle) -> list[tuple[int, int]]:
    """The estimates of what waits, p50 and p90, minutes from the first cycle, in order."""
    etas = [cycle.status(name)["eta"] for name in cycle.waiting]
    return [((unix(eta["p50"]) - T0) // 60, (unix(eta["p90"]) - T0) // 60) for eta in etas]


def test_a_queue_is_estimated_side_by_side_and_stays_as_told() -> None:
    world = queue(110)
    first, second = world.cycle("+0s"), world.cycle("+1m")

    starts = [60 * (1 + number // 2) for number in range(110)]
    assert told(first) == [(start, start) for start in starts]
    assert (second.plan.runs, second.plan.promises, second.plan.reservations) == ([], [], [])


def test_who_asks_as_much_for_as_long_starts_no_earlier_than_who_asked_before() -> None:
    """Nodes free up one by one, and three families share what may be paid on them."""
    world = World().policy(reservations={"maxHeld": 0}).domain("d1", 4).budget("org", 32)
    for team in "abc":
        world.budget(f"org:{team}", 16, spec={"parents": ["org"]})
    for number in range(4):
        world.run(f"first-{number}", 8, owner=f"org:{'abc'[number % 3]}", limit=f"{number + 1}h", created="-2d")
    asked = []
    for number in range(120):
        team, gpus, hours = "abc"[number % 3], 8 + 8 * (number * 7 % 3 % 2), 1 + number * 5 % 4
        name = f"next-{number:03}"
        asked.append((name, team, gpus, hours))
        world.run(name, gpus, owner=f"org:{team}", limit=f"{hours}h", created=moment(f"-{1000 - number}s"))
    cycle = world.cycle("+0s")
    start = {name: unix(cycle.status(name)["eta"]["p50"]) for name, *_ in asked if name in cycle.waiting}

    assert len(start) > 100
    assert [
        (name, other)
        for place, (name, team, gpus, hours) in enumerate(asked)
        for other, its_team, its_gpus, its_hours in asked[:place]
        if {name, other} <= start.keys() and team == its_team and gpus >= its_gpus and hours >= its_hours
        and start[name] < start[other]
    ] == []  # fmt: skip


def test_of_runs_without_a_limit_ends_are_learned() -> None:
    world = World().policy(reservations={"maxHeld": 0}).domain("d1", 2).budget("org:a", 16)
    for number in range(10):
        world.run(f"past-{number}", 1, limit=f"{10 * (number + 1)}m", created="-4h")
    world.cycle("-4h")
    world.run("first", 16, created="-1h").cycle("-1h")
    for number in range(101):
        world.run(f"next-{number:03}", 16, limit="1h", created=moment(f"-{1000 - number}s"))

    # it has served 50 minutes, and of those like it 60, 70, 80, 90 and 100 minutes are left
    assert told(world.cycle("-10m"))[:2] == [(20, 40), (80, 100)]


def test_durations_are_learned_from_runs_alike() -> None:
    world = World().run("mine", 4, owner="org:a").snapshot()
    (row,) = read_runs(world.tables["runs"], world.tables["arrays"])
    lasted = [*(Lasted("org:a", 3, 60 * n) for n in (5, 3, 1, 4, 2)), *(Lasted("org:a", 16, 6000) for _ in range(9))]
    past = Durations.of([*lasted, *(Lasted("org:b", 4, 9) for _ in range(90))])

    assert [past.quantile(row, tenths) for tenths in (5, 9)] == [180, 300]
    assert [past.quantile(row, tenths, 60) for tenths in (5, 9)] == [6000, 6000]  # of four alike too few
    assert past.quantile(row, 5, 6000) is None
    assert Durations.of(lasted[:4]).quantile(row, 5) is None


@examples(40)
@given(
    teams=st.lists(st.integers(4, 40), min_size=2, max_size=2),
    asks=st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from([1, 2, 3, 8, 12]), st.integers(1, 4), st.integers(1, 9)),
        min_size=1, max_size=6,
    ),
)  # fmt: skip
def test_who_asks_the_same_starts_together_when_it_would_one_after_the_other(
    teams: list[int], asks: list[tuple[str, int, int, int]]
) -> None:
    """Nodes free up one by one, and two families share what may be paid on them."""
    world = World().domain("d1", 4).budget("org", 32)
    for team, most in zip("ab", teams, strict=True):
        world.budget(f"org:{team}", most, spec={"parents": ["org"]})
    for number in range(4):
        world.run(f"first-{number}", 6, owner=f"org:{'ab'[number % 2]}", limit=f"{number + 1}h", created="-2d")
    for number, (team, gpus, *_) in enumerate(asks):
        world.run(f"next-{number}", gpus, owner=f"org:{team}")
    before = world.snapshot("+0s")
    state = state_of(after(before, plan(before, T0)), T0 + 60)
    held, lanes, lists = Held.of(state), LaneBook(state), state.asked.payers(state.book)

    asked = []
    for number, (_, gpus, hours, count) in enumerate(asks):
        run = state.runs["default", f"next-{number}"].waiting()
        purse = lists.of(run)
        ask = Ask(purse.number, tuple(sorted(purse.sites)), gpus, max(run.lowered().pieces()), 3600 * hours)
        asked.append((ask, lanes.of(purse, ask.sites), count))

    def starts(*, at_once: bool) -> tuple[list[int], list[object], list[object]]:
        """Times, and what is left of money and taken of slots then."""
        fluid = Fluid.of(state, held, state.limits, grid(state.at, state.at + 86_400, 300), lanes)
        counts = [(ask, payers, many) for ask, payers, count in asked for many in ([count] if at_once else [1] * count)]
        found = [start for each in counts for start in fluid.starts(*each)]
        return found, fluid.left.tolist(), fluid.taken.tolist()

    assert starts(at_once=True) == starts(at_once=False)
