"""Why this one and not that one: two runs under one plan, and the plan in which the one starts instead of the other.

Where few runs wait all of them are planned again; where many do, the two and those that could start beside
them, all else as the plan leaves it. The run that is to start instead is given, at its least width, a weight above
everything together, so that the search starts it wherever it can; what that plan is worth is counted with true weights.
"""

from dataclasses import dataclass, replace
from typing import Final

from msgspec import structs

from jobtree.world.plan import Plan, Stage
from jobtree.world.tables.after import after
from jobtree.world.tables.snapshot import Snapshot
from planner.advice.contenders import idle, weighed
from planner.advice.edits import suspended, unpromised
from planner.advice.meeting import Meeting, meeting
from planner.dates.holding import held_state
from planner.planning import plan as plan_of
from planner.search import stages
from planner.search.objective import START_STAGES, value_of
from planner.state.state import State
from policies.inputs.claims import RunKey
from policies.model.problem import Problem

RUNS: Final = "runs"
STARTS: Final = "starts"
WAITS: Final = "waits"
OUT: Final = "out"


@dataclass(frozen=True)
class Side:
    """One of the two. ``fate``: RUNS, STARTS, WAITS (for room or money) or OUT (for anything else, or no more).

    ``words``: why it waits; ``gpus``: its least width; ``weight``: what a GPU of it counts, in seconds (spec §4).
    """

    key: RunKey
    fate: str
    words: str
    owner: str
    gpus: int
    created: int
    weight: int

    @property
    def name(self) -> str:
        """``namespace/name``."""
        return "/".join(self.key)

    @property
    def placed(self) -> bool:
        """Does it hold GPUs after the plan?"""
        return self.fate in (RUNS, STARTS)


@dataclass(frozen=True)
class Scenario:
    """A plan of the two and of what is weighed with them: who starts, and what each stage is worth, in order."""

    started: frozenset[RunKey]
    stages: list[Stage]


@dataclass(frozen=True)
class Versus:
    """Two runs under a plan.

    ``present``: what is planned; ``instead``: the same with the one that waits started and the other held back, None
    where that cannot be, or where there is nothing to choose; ``lacks``: what it would still lack then. ``whole``:
    everything that waits was planned again.
    """

    run: Side
    other: Side
    meeting: Meeting
    whole: bool
    present: Scenario | None = None
    instead: Scenario | None = None
    lacks: str = ""

    @property
    def chosen(self) -> tuple[Side, Side] | None:
        """The one that holds GPUs after the plan and the one that waits; None where it is not so."""
        pair = sorted((self.run, self.other), key=lambda side: not side.placed)
        return (pair[0], pair[1]) if pair[0].placed and pair[1].fate == WAITS else None

    @property
    def differs(self) -> tuple[Stage, Stage] | None:
        """The first stage that tells the two plans apart: as planned, and instead."""
        if self.present is None or self.instead is None:
            return None
        pairs = zip(self.present.stages, self.instead.stages, strict=True)
        return next((pair for pair in pairs if pair[0].value != pair[1].value), None)


def versus(snapshot: Snapshot, plan: Plan, key: RunKey, other: RunKey) -> Versus:
    """Compare two runs of ``snapshot`` under ``plan``, which was made from it."""
    now = held_state(snapshot, plan.at)
    whole = now.few
    left = unpromised(after(snapshot, plan), (key, other))
    where = meeting(held_state(left, plan.at), key, other)
    found = Versus(_side(now, plan, key), _side(now, plan, other), where, whole)
    if found.chosen is None:
        return found
    placed, waits = found.chosen
    base = snapshot if whole else after(snapshot, _without(plan, placed.key))
    held = suspended(base, [placed.key])
    now = held_state(base, plan.at)
    then = replace(held_state(held, plan.at), changed=now.changed)  # holding it back lets nobody recall more
    if not whole:
        now, then = (weighed(state, (key, other)) for state in (now, then))
    present, instead = _scenario(now, None), _scenario(then, waits.key)
    if waits.key in instead.started:
        return replace(found, present=present, instead=instead)
    return replace(found, present=present, lacks=_lacks(held, plan.at, waits.key, whole=whole))


def _side(now: State, plan: Plan, key: RunKey) -> Side:
    run = now.runs[key]
    wait = next((each for each in plan.waits if (each.namespace, each.name) == key), None)
    fate, words = OUT, ""
    if any(lease.run_key == key for lease in plan.leases):
        fate = RUNS if key in now.held else STARTS
    elif key in now.held:
        fate = RUNS
    elif wait is not None:
        fate, words = OUT if key in now.blocked else WAITS, wait.message
    return Side(key, fate, words, run.owner, run.width_min, run.created, run.weight(now.policy, now.at))


def _without(plan: Plan, key: RunKey) -> Plan:
    """The plan without what it does for one run."""
    leases = [lease for lease in plan.leases if lease.run_key != key]
    runs = [update for update in plan.runs if (update.namespace, update.name) != key]
    return structs.replace(plan, leases=leases, runs=runs)


def _scenario(state: State, forced: RunKey | None) -> Scenario:
    """Plan of a state, with ``forced`` started wherever that is possible."""
    if forced is not None:
        pending = [structs.replace(run, total=run.width_min) if run.key == forced else run for run in state.pending]
        state = state.asking(pending)
    problem = state.problem()
    search = problem if forced is None else _favoured(problem, forced)
    *_, last = stages.incumbents(search, state.room, state.policy.solver, state.effort)
    found = [
        structs.replace(stage, value=value_of(problem, last.draft, unfunded=START_STAGES[stage.name]))
        if stage.name in START_STAGES
        else stage
        for stage in last.stages
    ]
    if forced is not None:  # of a plan that was made to be, nothing is proven
        found = [structs.replace(stage, bound=stage.value, proven=False) for stage in found]
    return Scenario(frozenset(last.draft.started(problem)), found)


def _favoured(problem: Problem, forced: RunKey) -> Problem:
    """The problem with one run worth more than everything else together."""
    total = sum(
        candidate.weight * kind.gpus(kind.lowered.steps)
        for candidate in problem.candidates
        for kind in [problem.types[candidate.type]]
    )
    mine = set(problem.ways.get(forced, ()))
    candidates = [
        replace(candidate, weight=candidate.weight + total) if number in mine else candidate
        for number, candidate in enumerate(problem.candidates)
    ]
    for kind in problem.types:
        kind.members.sort(key=lambda number: candidates[number].order)
    return replace(problem, candidates=candidates)


def _lacks(world: Snapshot, at: int, key: RunKey, *, whole: bool) -> str:
    """The planner's own words on a run that waits even there."""
    if not whole:
        world = suspended(world, idle(held_state(world, at), [key]))
    return next(
        (wait.message for wait in plan_of(world, at).waits if (wait.namespace, wait.name) == key),
        "it could start, but not at its least width",
    )
