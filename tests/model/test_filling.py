"""The fill, run by run: what it remembers is what adding everything up anew would find."""

import pytest
from hypothesis import given

from planner import Planning
from planner.effort import USUAL, Effort
from planner.filling import greedy
from planner.filling.filler import Filler, Settled
from planner.filling.purses import Purses
from planner.placement.draft import Draft
from planner.placement.place import Start
from planner.placement.vacancy import Need, Vacancies
from policies.inputs.shapes import NO_LOAD
from policies.model.problem import RunType
from policies.model.recall import LEVELS
from tests.reference import worlds
from tests.reference.worlds import AT, World
from tests.support.effort import examples


@pytest.mark.parametrize("effort", [Effort(exact=0), USUAL], ids=["large", "exact"])
@pytest.mark.parametrize("kind", ["recall", "all"])
def test_what_is_remembered_is_what_everything_adds_up_to(kind: str, effort: Effort) -> None:
    @examples(25)
    @given(worlds.worlds(kind))
    def holds(world: World) -> None:
        _hold(world, effort)

    holds()


def _hold(world: World, effort: Effort) -> None:
    planning = Planning(world.snapshot(), AT, effort)
    problem, room, draft = planning.problem, planning.state.room(), Draft()
    purses = Purses.after(problem, draft)
    vacancies = Vacancies(room)
    needs: list[Need] = [
        (sites, max(1, kind.lowered.pod), load)
        for kind in problem.types
        for sites in {kind.sites, *(frozenset((site,)) for site in kind.sites)}
        for load in (kind.load, NO_LOAD)
    ]
    for number, index in enumerate(sorted(range(len(problem.candidates)), key=lambda i: problem.candidates[i].order)):
        asked = needs[: number + 1]  # one more each time, when something is taken already
        free = [vacancies.of(*need).tolist() for need in asked]
        before = [*room.free]

        assert free == [[room.capacity(d, *need) for d in range(len(problem.fleet.domains))] for need in asked]
        assert _left(purses) == _left(Purses.after(problem, draft))

        greedy.fill(Filler(problem, room, purses), draft, [index])
        for node in (n for n, free in enumerate(before) if room.free[n] != free):
            vacancies.changed(int(problem.fleet.domain[node]))

    assert _left(purses) == _left(Purses.after(problem, draft))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["recall", "all"])
def test_what_tries_have_shown_would_be_found_again(kind: str) -> None:
    def hold(world: World) -> None:
        assert _filled(world, Filler) == _filled(world, _Forgetful)

    examples(60)(given(worlds.worlds(kind))(hold))()


class _Forgetful(Filler):
    """One that learns nothing from a try."""

    def try_start(self, kind: RunType, start: Start) -> Settled | None:
        self.forget()
        return super().try_start(kind, start)


def _filled(world: World, sort: type[Filler]) -> Draft:
    planning = Planning(world.snapshot(), AT, Effort(exact=0))  # where purses are not compared one by one
    problem, draft = planning.problem, Draft()
    order = sorted(range(len(problem.candidates)), key=lambda i: problem.candidates[i].order)
    greedy.fill(sort(problem, planning.state.room(), Purses.after(problem, draft)), draft, order)
    return draft


def _left(purses: Purses) -> tuple[list[int], list[int], list[int]]:
    caps = range(len(purses.problem.book.caps))
    return purses.used, purses.trees, [purses.left(cap, level) for cap in caps for level in range(LEVELS)]
