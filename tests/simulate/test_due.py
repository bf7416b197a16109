"""When the next cycle is due: as soon as may be while something is decided, and ever less often for promises alone."""

from itertools import pairwise

import msgspec

from jobtree.api import Policy, Time
from jobtree.api.kinds.reservation import ReservationStatus
from jobtree.world.plan import Plan, PromiseUpdate
from jobtree.world.reading.intake import Intake
from simulator.due import REST, Due
from tests.simulate.plans import AT, closure, lease, plan

KEY = "default", "r"


def due() -> Due:
    return Due(Policy().spec, Intake(revision=""))


def moves(at: int) -> Plan:
    """A plan that puts a promise off by a minute."""
    status = ReservationStatus(state="Pending", earliest_start=Time(at + 60))
    return plan(promises=[PromiseUpdate(namespace="default", name="p", status=status)])


def turns(found: Due, most: int) -> list[int]:
    """Seconds of cycles of which each puts a promise off, until none is due."""
    times = [AT]
    while len(times) < most and (after := found.after(moves(times[-1]), times[-1])) is not None:
        times.append(after)
    return times


def test_cycles_that_slide_a_promise_for_ever_come_to_an_end() -> None:
    times = turns(due(), 1000)

    gaps = [later - sooner for sooner, later in pairwise(times)]
    horizon = int(Policy().spec.reservations.horizon)
    assert gaps == [1] * REST + [1 << step for step in range(1, horizon.bit_length())]


def test_what_happens_begins_anew() -> None:
    found = due()
    turns(found, 1000)

    found.happened()

    assert found.after(moves(AT), AT) == AT + 1


def test_a_promise_that_stands_has_its_cycle_at_its_second() -> None:
    found = due()
    found.after(moves(AT), AT)

    assert (found.after(plan(), AT + 1), found.after(plan(), AT + 60)) == (AT + 60, None)


def test_a_time_limit_comes_at_its_second_whatever_promises_do() -> None:
    found = due()
    found._limits[KEY] = 100 * 86400
    found.started(KEY, AT)

    times = turns(found, 1000)
    assert times[-1] == AT + 100 * 86400
    assert found.after(plan(closures=[closure("one")]), times[-1]) == times[-1] + 1


def test_what_is_saved_goes_on_alike() -> None:
    found, other = due(), due()
    found.silent("n1", AT)
    found.started(KEY, AT)
    for at in range(AT, AT + REST + 3):
        found.after(moves(at), at)

    other.resume(msgspec.msgpack.decode(msgspec.msgpack.encode(found.saved())))

    assert other.saved() == found.saved()
    assert other.after(moves(AT + 50), AT + 50) == found.after(moves(AT + 50), AT + 50)


def test_starts_are_followed_by_another_cycle() -> None:
    assert due().after(plan(leases=[lease("one", 0)]), AT) == AT + 1
