"""A big gang beside an endless stream of small runs is promised a start and starts then; small ones pass before it."""

from hypothesis import given
from hypothesis import strategies as st

from tests.support.effort import examples
from tests.support.times import unix
from tests.support.worlds import World

STEP = 10
"""Minutes between two cycles, and two arrivals."""
AT = unix("+0s")


def streamed(first: tuple[int, int], limits: list[int]) -> tuple[int, dict[str, int]]:
    """2 × 8 GPUs, full with two runs of the ``first`` limits; a gang of both nodes comes, then a run for one node at
    every step, of the next of the ``limits``; all in minutes.

    Returns when the gang is promised to start, and when each started.
    """
    world = World().domain("d", 2).budget("org:a", 64)
    for name, limit in zip(("x", "y"), first, strict=True):
        world.run(name, 8, limit=f"{limit}m")
    world.cycle("+0s")
    world.run("gang", 16, by=8, limit="30m", created="+1m")
    promised, started = 0, dict[str, int]()
    for number, limit in enumerate(limits, 1):
        minute = STEP * number
        world.run(f"s{number}", 8, limit=f"{limit}m", created=f"+{minute}m")
        plan = world.cycle(f"+{minute}m").plan
        promised = promised or next(
            (int(m.spec.earliest_start) for m in plan.reservations if m.spec.run_ref.run_name == "gang"), 0
        )
        started |= {lease.spec.run_ref.name: minute for lease in plan.leases}
    return (promised - AT) // 60, started


@examples(6)
@given(
    first=st.tuples(*[st.sampled_from([20, 30, 40, 60])] * 2),
    limits=st.lists(st.sampled_from([10, 20, 30, 50]), min_size=11, max_size=11),
)
def test_a_gang_starts_when_promised_whatever_streams_past_it(first: tuple[int, int], limits: list[int]) -> None:
    promised, started = streamed(first, limits)
    assert (promised, started["gang"]) == (max(first), max(first))


def test_small_runs_pass_before_a_gang_as_far_as_they_end_by_its_start() -> None:
    promised, started = streamed((60, 20), [50, 20, 20, 10, 10, 20, 20, 20, 20, 20, 20])
    before = {name: minute for name, minute in started.items() if minute < promised}
    assert (promised, started["gang"], before) == (60, 60, {"s2": 20, "s3": 40})
