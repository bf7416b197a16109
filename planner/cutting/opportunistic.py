"""Work that is unfunded by its own choice gives way to funded starts, in the very cycle that needs its slots (spec §6).

What waits is tried by age, as the first plan of a search does. A start that finds no room beside all that runs gets
that of the opportunistic runs whose end frees enough at the least loss. On a live cluster it starts in the cycle that
finds their pods gone; until then what they held counts as found, so nothing more goes for it.
"""

from planner.cutting.least import Weighing
from planner.cutting.trial import Trial
from planner.cutting.victims import victims_of
from planner.state.state import State
from policies.cuts.order import Cut
from policies.inputs.claims import LeaseKey, RunKey


def give_way(trial: Trial) -> dict[RunKey, dict[LeaseKey, Cut]]:
    """Cut what funded starts need, by run; nothing where it has a notice: then a promise does, when it is due."""
    made: dict[RunKey, dict[LeaseKey, Cut]] = {}
    if not is_called_for(trial.state):
        return made
    trial.slots.await_pods()
    problem, limits = trial.problem, trial.state.effort.cutting
    funded = [c for c in range(len(problem.candidates)) if not problem.type_of(c).unfunded]
    tries = 0
    for candidate in sorted(funded, key=lambda c: problem.candidates[c].order):
        if candidate in trial.started:
            continue
        members = trial.members(problem.candidates[candidate].run.key)
        if (
            members is None
            or trial.widen(trial.start(members))
            or tries >= limits.tries
            or not trial.is_funded(members)
        ):
            continue
        tries += 1
        victims = victims_of(trial.state, trial.owners(members), opportunistic=True, cut=trial.cut)
        victims = [each._replace(spares=()) for each in victims]  # what gave way once may do so again
        weighing = Weighing.of(victims, trial.needs(members), trial.filler.room, limits)
        harm = weighing.least()
        chosen = None if harm is None else weighing.chosen(harm)
        if chosen is None:
            continue
        cut = trial.take(weighing, chosen, "", {})
        found = trial.widen(trial.start(members))
        if not found:
            trial.undo(cut)
            continue
        trial.pin(found)
        made[trial.key(members)] = cut
    return made


def is_called_for(state: State) -> bool:
    """Does anything wait, and anything run that would give way at once?"""
    at_once = not state.policy.opportunistic.notice
    return at_once and bool(state.pending) and bool(victims_of(state, (), opportunistic=True))
