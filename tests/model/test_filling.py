"""The fill, run by run: what it remembers is what adding everything up anew would find."""

import pytest
from hypothesis import given

from planner import Planning, greedy, lower
from planner.draft import Draft
from planner.filler import Filler
from planner.purses import Purses
from planner.vacancy import Need, Vacancies
from policies.problem import Problem
from policies.shapes import NO_LOAD
from tests.reference import worlds
from tests.reference.worlds import AT, World
from tests.support.effort import examples


@pytest.mark.parametrize("few", [0, lower.EXACT], ids=["large", "exact"])
@pytest.mark.parametrize("kind", ["recall", "all"])
def test_what_is_remembered_is_what_everything_adds_up_to(kind: str, few: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lower, "EXACT", few)
    examples(25)(given(worlds.worlds(kind))(_hold))()


def _hold(world: World) -> None:
    planning = Planning(world.snapshot(), AT)
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
        loose = [purses.loose(*asked) for asked in _asked(problem)]
        before = [*room.free]

        assert free == [[room.capacity(d, *need) for d in range(len(problem.fleet.domains))] for need in asked]
        assert loose == [_loose(purses, *asked) for asked in _asked(problem)]

        greedy.fill(problem, room, purses, draft, [index])
        for node in (n for n, free in enumerate(before) if room.free[n] != free):
            vacancies.changed(int(problem.fleet.domain[node]))

    assert _left(purses) == _left(Purses.after(problem, draft))


@pytest.mark.parametrize("kind", ["recall", "all"])
def test_what_once_found_no_payers_would_find_none_again(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def hold(world: World) -> None:
        remembering = _filled(world)
        with monkeypatch.context() as patch:
            patch.setattr(Filler, "_learn", lambda *_: None)
            forgetful = _filled(world)
        assert remembering == forgetful

    monkeypatch.setattr(lower, "EXACT", 0)  # nor are purses compared one by one
    examples(60)(given(worlds.worlds(kind))(hold))()


def _filled(world: World) -> Draft:
    planning = Planning(world.snapshot(), AT)
    problem, draft = planning.problem, Draft()
    order = sorted(range(len(problem.candidates)), key=lambda i: problem.candidates[i].order)
    greedy.fill(problem, planning.state.room(), Purses.after(problem, draft), draft, order)
    return draft


def _left(purses: Purses) -> tuple[list[int], list[int], list[bool], bool]:
    return purses.used, purses.trees, purses.stays, purses.beside.lasts()


def _asked(problem: Problem) -> list[tuple[int, int]]:
    """Every cap, and everywhere that starts stand at their payers."""
    asked = {payer.standing for candidate in problem.candidates for payer in candidate.payers}
    standings = sorted(standing for standing in asked if standing is not None)
    return [(cap, standing) for cap in range(len(problem.book.caps)) for standing in standings]


def _loose(purses: Purses, cap: int, standing: int) -> int:
    problem = purses.problem
    yielding = (problem.running.parts[i] for i in problem.yielding.parts if purses.stays[i])
    return sum(part.touched.get(cap, 0) for part in yielding if problem.yielding.recalls(standing, part))
