"""For every "no" the cheapest change that would make it a "yes" (spec §3.9, §4).

`remedies` finds, for a run that waits under a plan, the cheapest change of each kind that starts it, and where no
single change of the world around it does, the cheapest combination. What is found has been confirmed: the change was
made on the snapshot's tables and the planner, asked again, started the run.

`bench` where changes are tried, on the part of the world that is `near`; `relief` the planner's own model of the run,
with `lifts` that give way at a price, and `parts` the objects they stand for; `lenders`, `nodes`, `submitting`,
`times` what else may help; `record` a remedy, and what it costs.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from jobtree.world.plan import Plan
from jobtree.world.tables.snapshot import Snapshot
from planner.advice.contenders import fits
from planner.advice.holders import Holder, holders
from planner.effort import USUAL, Effort
from planner.remedies import lenders, nodes, submitting, times
from planner.remedies.bench import Bench, largest
from planner.remedies.lifts import Lift
from planner.remedies.parts import remedy_of, together
from planner.remedies.record import Change, Remedy, Who, typed, written
from planner.remedies.relief import Relief
from policies.inputs.claims import RunKey
from policies.lifecycle import unweighed

__all__ = ["Change", "Remedies", "Remedy", "Who", "remedies", "typed", "written"]

LIMITS: Final = ("cap", "tree", "per-run", "use-run")
SINGLES: Final = (("own", True), ("end", True), ("back", True), ("free", False))
"""Kinds of lifts beside rises, and whether one of them is to do."""
MIXTURES: Final = (
    LIMITS,
    (*LIMITS, "borrow"),
    ("own",),
    ("own", "end"),
    (*LIMITS, "back"),
    (*LIMITS, "free"),
    (*LIMITS, "borrow", "back", "own", "end"),
)
"""Combinations that are looked for, in this order, where no single change around the run does."""

SHARED: Final = {"end": ("own", "end"), "cap": LIMITS, "free": ("free",), "node": ("back",)}
"""Kind of a change that others take → the lifts that are looked for, so that they start and the run starts, too."""


@dataclass
class Remedies:
    """``found``: confirmed, cheapest first. ``taken``: sentences on changes that other runs would profit from instead;
    ``ahead``: which runs, by the kind of change. ``holders``: runs that hold GPUs where it lacks least, most first.

    ``now``: each was confirmed in the world of now, too, and not only in the one that this cycle leaves. ``weighed``:
    whether the run waits for room or money at all, and not for other runs.
    """

    now: bool
    weighed: bool = True
    found: list[Remedy] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    ahead: dict[str, list[RunKey]] = field(default_factory=dict, repr=False)
    holders: list[Holder] = field(default_factory=list)


def remedies(snapshot: Snapshot, plan: Plan, key: RunKey, effort: Effort = USUAL) -> Remedies:
    """Remedies for the run ``key`` under ``plan``, made from ``snapshot``; none for a run that does not wait."""
    wait = next((wait for wait in plan.waits if (wait.namespace, wait.name) == key), None)
    if wait is None or wait.reason in unweighed.ELSEWHERE:
        return Remedies(True, weighed=wait is None)
    bench = Bench.of(snapshot, plan, key, effort)
    result = Remedies(bench.few, holders=holders(bench.state, key) if wait.deficit_gpus else [])
    same = submitting.as_it_is(bench)
    if same is not None and bench.instead(same.edits) is None:  # any change would do: none is the cause
        result.found.append(same)
        return result
    for remedy in (*submitting.remedies(bench), *times.wait(bench)):
        if remedy.at is not None or bench.instead(remedy.edits) is None:
            result.found.append(remedy)
    around = [remedy for remedy in _around(bench, result) if remedy is not None]
    result.found = sorted([*result.found, *around], key=lambda remedy: remedy.cost)
    return result


def _around(bench: Bench, result: Remedies) -> Iterator[Remedy | None]:
    """Changes of the world around the run: single ones, and the cheapest combination where there are none."""
    terms = [*lenders.binding(bench), *lenders.use_terms(bench), *lenders.terms(bench)]
    opened = next((each for each in terms if fits(bench.state) and bench.within(each.edits).starts()), None)
    money = [*lenders.sponsors(bench), *([opened] if opened else [])]
    singles = [_confirmed(bench, each, result) for each in money]
    relief = Relief(bench)
    rise = relief.least(*LIMITS, one=True)
    singles.append(_raised(bench, rise, result))
    lifted = [relief.least(kind, one=one) for kind, one in SINGLES]
    singles += [_confirmed(bench, remedy_of(bench, lifts), result) for lifts in lifted if lifts]
    hopeful = bench.few or not result.ahead  # else others would take what more changes give, too
    if hopeful and not any(each is not None and each.kind in ("free", "node", "end") for each in singles):
        singles += [_confirmed(bench, each, result) for each in nodes.more(bench)]
    yield from singles
    if not any(singles):
        mixed = _mixtures(bench, relief, terms, [rise, *lifted]) if hopeful else []
        found = next((remedy for remedy in mixed if bench.instead(remedy.edits) is None), None)
        yield found or _shared(bench, result)


def _shared(bench: Bench, result: Remedies) -> Remedy | None:
    """The cheapest of the changes that are enough for the run and for those that would start instead of it, too.

    Where many wait, of the first kind only that is enough for the run alone.
    """
    kinds = [lifts for kind, lifts in SHARED.items() if kind in result.ahead and (bench.few or kind != "end")]
    ahead = {other for others in result.ahead.values() for other in others}
    limits = bench.state.effort.helping
    for _ in range(limits.rounds if kinds else 0):
        crowd = bench.beside(ahead)
        if sum(run.width_min for run in crowd.state.pending) > limits.wider * bench.run.width_min:
            return None
        relief = Relief(crowd)
        tried = [relief.least(*lifts) for lifts in (kinds if bench.few else kinds[:1])]
        more = set[RunKey]()
        for remedy in sorted((remedy_of(bench, lifts) for lifts in tried if lifts), key=lambda remedy: remedy.cost):
            others = bench.instead(remedy.edits)
            if others is None:
                return remedy
            more.update(others)
        if more <= ahead:
            return None
        ahead |= more
    return None


def _mixtures(bench: Bench, relief: Relief, terms: list[Remedy], tried: list[dict[Lift, int]]) -> Iterator[Remedy]:
    """Combinations of lifts that have not been ``tried``, then of other terms and lifts."""
    for kinds in MIXTURES:
        lifts = relief.least(*kinds)
        if lifts and lifts not in tried:
            tried.append(lifts)
            yield remedy_of(bench, lifts)
    for each in terms:
        moved = bench.within(each.edits)
        lifts = Relief(moved).least(*LIMITS, "back", "free")
        if lifts:
            yield together([each, remedy_of(moved, lifts)])


def _confirmed(bench: Bench, remedy: Remedy, result: Remedies) -> Remedy | None:
    """The remedy, if the run starts; else it is noted who does."""
    others = bench.instead(remedy.edits)
    if others is None:
        return remedy
    if others:
        more = f" and {len(others) - 1} more" if len(others) > 1 else ""
        result.ahead.setdefault(remedy.kind, []).extend(others)
        result.taken.append(f"{remedy.words}: run {others[0][0]}/{others[0][1]}{more} would start instead")
    return None


def _raised(bench: Bench, lifts: dict[Lift, int], result: Remedies) -> Remedy | None:
    """A rise, as large as it must be for the run to start although others that wait take from it."""
    if not lifts:
        return None
    ((lift, least),) = lifts.items()

    def works(rise: int) -> bool:
        return bench.instead(remedy_of(bench, {lift: rise}).edits) is None

    if works(least):
        return remedy_of(bench, lifts)
    high = next(
        (least * factor for factor in _doublings(bench.state.effort.helping.wider) if works(least * factor)), None
    )
    if high is None:
        return _confirmed(bench, remedy_of(bench, lifts), result)
    low = high // 2
    rise = high - largest(high - low - 1, lambda less: works(high - less))
    return remedy_of(bench, {lift: rise})


def _doublings(most: int) -> Iterator[int]:
    factor = 2
    while factor <= most:
        yield factor
        factor *= 2
