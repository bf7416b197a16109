"""Work that is unfunded by its own choice gives way to funded starts, in the very cycle that needs its slots (spec §6).

What waits is tried by age, as the first plan of a search does. A start that finds no room beside all that runs gets
that of the opportunistic runs whose end frees enough at the least loss.
"""

from typing import Final

from planner.cutting.trial import Trial
from planner.cutting.victims import Victim, victims_of
from planner.state.derive import State
from policies.cuts.order import Cut
from policies.inputs.claims import LeaseKey, RunKey

TRIES: Final = 64
"""Most starts for which room is looked for in one cycle: the oldest."""


def give_way(trial: Trial) -> dict[RunKey, dict[LeaseKey, Cut]]:
    """Cut what funded starts need, by run. Members of gangs that start together make nobody give way."""
    made: dict[RunKey, dict[LeaseKey, Cut]] = {}
    if not is_called_for(trial.state):
        return made
    problem = trial.problem
    funded = [c for c in range(len(problem.candidates)) if not trial.type_of(c).unfunded]
    tries = 0
    for candidate in sorted(funded, key=lambda c: problem.candidates[c].order):
        run = problem.candidates[candidate].run
        if candidate in trial.started or trial.is_tied(run.key) or trial.start(candidate) is not None:
            continue
        if tries >= TRIES or not trial.is_funded(candidate):
            continue
        tries += 1
        victims = _giving_way(trial.state, run.owner)
        weighing = trial.weighing(candidate, [each._replace(spares=()) for each in victims])
        harm = weighing.least()
        chosen = None if harm is None else weighing.chosen(harm)
        if chosen is None:
            continue
        cut = trial.take(weighing, chosen, "", {})
        found = trial.start(candidate)
        if found is None:
            trial.undo(cut)
            continue
        trial.pin(candidate, found)
        made[run.key] = cut
    return made


def is_called_for(state: State) -> bool:
    """Does anything wait, and anything run that would give way?"""
    return bool(state.pending) and bool(_giving_way(state, ""))


def _giving_way(state: State, owner: str) -> list[Victim]:
    """What is unfunded by its own choice and may go for a run of ``owner``."""
    return [victim for victim in victims_of(state, owner, opportunistic=True) if victim.unfunded]
