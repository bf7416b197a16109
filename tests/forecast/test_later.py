"""The state of a known time told from that of now is the one that the world has then."""

from hypothesis import given
from hypothesis import strategies as st

from jobtree.world.tables.after import after
from planner.dates.holding import held_state
from planner.forecast.calendar import estimates, foreseen, known_times
from planner.forecast.later import Later
from planner.planning import plan
from planner.state.derive import state_of
from planner.state.state import State
from policies.caps.book import is_timeless
from tests.forecast.busy import Script, scripts
from tests.reference.worlds import AT, snapshot
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.effort import examples
from tests.support.times import T0, moment, unix
from tests.support.worlds import World


def seen(state: State) -> dict[str, object]:
    """What starts are decided by: who holds what, what is free, who is paid and what that leaves."""
    held = {key: sorted(lease.key for lease in leases) for key, leases in state.held.items()}
    return {
        "held": held,
        "room": {name: getattr(state.room(), name) for name in ("free", "lost", "cpu", "memory", "pods")},
        "slots": [[*slots] for slots in state.room().slots],
        "classes": state.funded.classes,
        "used": state.funded.used,
        "spent": {cap: amount for cap, amount in state.spent.cap.items() if amount},
        "waiting": {run.key: state.blocked.get(run.key, "") for run in state.pending},
        "quotas": [(tree.left, sorted(tree.members)) for tree in state.quotas()],
    }


def capped(budget: Document, hours: int | None) -> Document:
    """A patch of its envelopes, with so many GPU-hours each."""
    more = {} if hours is None else {"maxGPUHours": hours}
    return {"spec": {"envelopes": [{**each, **more} for each in budget["spec"]["envelopes"]]}}


@examples(20)
@given(script=scripts(), hours=st.sampled_from([None, 8, 24]))
def test_a_known_time_is_told_as_the_world_has_it(script: Script, hours: int | None) -> None:
    fleet = [doc.merge(each, capped(each, hours)) if each["kind"] == "Budget" else each for each in script.fleet]
    before = snapshot([*fleet, *(run for _, run in script.runs)])
    world = after(before, plan(before, AT))
    state = state_of(world, AT + 60)
    told, whole = Later.of(world, state, ()), foreseen(world, estimates(world, state))
    times = sorted({each.at for each in known_times(state, estimates(world, state)) if each.at > state.at})
    assert [(at, seen(told.at(at))) for at in times[:4]] == [(at, seen(state_of(whole, at))) for at in times[:4]]


@examples(20)
@given(script=scripts())
def test_what_promises_hold_is_seen_as_if_all_were_derived_with_it(script: Script) -> None:
    before = snapshot([*script.fleet, *(run for _, run in script.runs)])
    world = after(before, plan(before, AT))
    state = held_state(world, AT + 60)
    assert seen(state) == seen(state_of(world, AT + 60, state.holds))


def test_what_the_clock_changes_is_told_too() -> None:
    world = World().domain("A", nodes=3).budget("org:a", 4)
    world.budget("org:b", 8, spec={"parents": []}, lending={"allow": True, "maxDuration": "1h"})
    world.budget("org:c", 8, name="later", spec={"parents": []}, start=moment("+90m"))
    world.run("lent", 8, limit="3h", funding={"allowBorrow": True, "sponsors": ["org:b"]})
    world.run("own", 8, limit="2h", owner="org:b").run("ends", 2, limit="30m").run("opens", 8, owner="org:c")
    world.cycle(T0)
    before = world.snapshot("+1m")
    state = state_of(before, unix("+1m"))
    told, whole = Later.of(before, state, ()), foreseen(before, estimates(before, state))
    times = [unix(at) for at in ("+31m", "+61m", "+90m", "+2h", "+3h")]
    assert [is_timeless(state.book, at) for at in times] == [True, True, False, False, False]
    assert [seen(told.at(at)) for at in times] == [seen(state_of(whole, at)) for at in times]
