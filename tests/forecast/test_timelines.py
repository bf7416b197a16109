"""A timeline holds what starts at every moment that it lasts over, whatever was let go and held again meanwhile."""

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from jobtree.world.tables.after import after
from planner.cutting.places import Place
from planner.cutting.told import Lasting
from planner.filling.purses import payers_of
from planner.forecast.calendar import FAR, estimates, expected, known_times
from planner.forecast.later import Later
from planner.forecast.moments import Moment, gpus_of
from planner.forecast.natural import Timeline
from planner.forecast.starts import together
from planner.planning import plan
from planner.state.derive import state_of
from planner.state.state import State
from policies.inputs.claims import RunKey
from tests.forecast.busy import Script, scripts
from tests.reference.worlds import AT, snapshot
from tests.support.effort import examples
from tests.support.worlds import World

MOST: Final = 24


def dated_in(script: Script) -> Timeline:
    """What waits after the first cycle, dated by name on the known times of that world."""
    before = snapshot([*script.fleet, *(run for _, run in script.runs)])
    world = after(before, plan(before, AT))
    state = state_of(world, AT + 60)
    known = [each for each in known_times(state, estimates(world, state)) if each.at > state.at]
    waiting = [run.key for run in state.pending if run.key not in state.blocked and not run.is_cpu]
    timeline = Timeline.of(Later.of(world, state, waiting), known, MOST, state)
    asked = {tuple(mine): mine for mine in (together(state, key, waiting, expected(world)) for key in sorted(waiting))}
    for mine in asked.values():
        timeline.date(mine)
    return timeline


def left(timeline: Timeline, moment: Moment, state: State) -> list[int]:
    """GPUs by node that nobody holds then, counted from the starts that are held."""
    free = [*state.room().free]
    for dated in timeline.dated:
        if dated.moment.at <= moment.at and (dated.end is None or moment.since < dated.end):
            for node, gpus in gpus_of(dated.found).items():
                free[node] -= gpus
    return free


@examples(30)
@given(script=scripts(), data=st.data())
def test_a_moment_holds_what_starts_by_then_whatever_was_set_aside(script: Script, data: st.DataObject) -> None:
    timeline = dated_in(script)
    dated = [each.key for each in timeline.dated]
    for kept in data.draw(st.lists(st.sets(st.sampled_from(dated)) if dated else st.just(set[RunKey]()), max_size=3)):
        timeline.without(set(dated) - kept)
        seen = data.draw(st.sampled_from(timeline.moments))
        assert seen.filler.room.free == left(timeline, seen, seen.state)
    lost = timeline.back()
    assert (lost, sorted(each.key for each in timeline.dated)) == (set(), sorted(dated))
    assert [moment.filler.room.free for moment in timeline.moments] == [
        left(timeline, moment, moment.state) for moment in timeline.moments
    ]


@examples(30)
@given(script=scripts())
def test_payers_that_are_passed_over_have_nothing_left(script: Script) -> None:
    timeline = dated_in(script)
    for purses in (moment.filler.purses for moment in timeline.moments):
        candidates = {each.purse: each for each in purses.problem.candidates if each.payers}
        for (purse, region), passed in purses.empty.items():
            ways = [touches for _, touches in purses.ways.of(candidates[purse], region).values()]
            assert [purses.most(touches, 1000) for touches in ways[:passed]] == [0] * passed


def first(timeline: Timeline, mine: Lasting) -> int | None:
    """The first known time at which runs can start, each tried in full; nothing is held."""
    for at in [moment.at for moment in timeline.moments]:
        if timeline.stand(mine, at, {}, least=False):
            timeline.release(mine.keys())
            return at
    return None


@examples(100)
@given(script=scripts(), data=st.data())
def test_a_quick_look_passes_over_no_start(script: Script, data: st.DataObject) -> None:
    """Neither at a time, nor beside so many of those that were set aside."""
    timeline = dated_in(script)
    if not timeline.dated:
        return
    world, state = timeline.later.world, timeline.later.now
    waiting = {each.key for each in timeline.dated}
    gangs = [together(state, key, waiting, expected(world)) for key in sorted(waiting)]
    mine = data.draw(st.sampled_from(gangs))
    timeline.release(mine.keys())
    others = [{key} for key in sorted(waiting - mine.keys())]
    timeline.without(waiting)
    bound = timeline.beside(others, mine, FAR) if others else 0
    for count in range(len(others)):
        timeline.without(set().union(*others[count:]))
        found = timeline.date(mine)
        timeline.release(mine.keys())
        tried = first(timeline, mine)
        assert min((each.at for each in found.values()), default=None) == tried
        assert tried is None or count <= bound


def test_what_starts_now_keeps_its_payers_as_a_lease_does() -> None:
    """What org:a has is taken until +1h: `y` is paid by org, then as well; what starts later might have org:a's."""
    world = World().domain("A", nodes=2).budget("org:a", 8, sharing="none").budget("org", 8)
    world.run("x", 8, limit="25h").old()
    found = world.run("y", 8).snapshot()
    state = state_of(found, AT)
    later = Later.of(found, state, {("default", "y")})
    now, then = Moment(AT, "now", later), Moment(AT + 3600, "end", later)
    start = now.try_start(("default", "y"))
    assert start is not None
    who = []
    for keeps in (True, False):
        taken = then.take(("default", "y"), start, keeps=keeps)
        assert taken is not None
        who.append(Place.of(then.state, taken.nodes, payers_of(taken.paid)).payers)
        then.give_back(taken)

    assert who == [(("org", "gpus"),), (("org-a", "gpus"),)]
