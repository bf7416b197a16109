"""Cuts that were not needed: without one of them alone, all that was due and started could still have been laid.

A cut is what is drawn of a run, one group, or one spare. So GPUs that are left over of a run that goes whole, or of a
group, are no fault where nothing smaller would have done. Starts are laid out in every way, at their least width, each
group in one domain: of a world whose pods have no size and whose owners may each use all of it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from jobtree.api.kinds.run import RunSpec
from jobtree.world.plan import Plan
from jobtree.world.reading.intake import Intake

CUTS: Final = ("Lottery", "Shrink", "DropSpare", "ReclaimUnfunded")


class Cut(NamedTuple):
    """What goes together. ``group``: of what goes group by group; ``promised``: for a promise, not for any start?"""

    reason: str
    run: tuple[str, str]
    group: int | None
    promised: bool


def unneeded(room: Mapping[str, int], domain: Mapping[str, str], before: Intake, plan: Plan) -> list[Cut]:
    """Of one plan. ``room``: GPUs by domain; ``domain``: by node; ``before``: what the cluster held."""
    free = Counter(room)
    closures = {(each.namespace, each.name): each for each in plan.closures}
    cuts: dict[Cut, Counter[str]] = {}
    for lease in before.leases:
        closure = closures.get((lease.namespace, lease.name))
        held = {} if lease.status.closed else {domain[lease.spec.node]: len(lease.spec.slice.nodes)}
        if closure is None:
            free.subtract(held)
        elif closure.reason in CUTS:
            group = None if closure.reason == "Lottery" else lease.spec.group
            cut = Cut(closure.reason, lease.run_key, group, bool(closure.made_room_for))
            cuts.setdefault(cut, Counter()).update(held)
    drawn = {cut.run for cut in cuts if cut.reason == "Lottery"}
    return [
        cut
        for cut, freed in cuts.items()
        if cut.reason == "Lottery" or cut.run not in drawn  # of a run that is drawn all goes
        if _fits(_kept(before, plan) if cut.promised else _funded(plan), [free[each] - freed[each] for each in room])
    ]


def _kept(before: Intake, plan: Plan) -> Iterator[int]:
    """Groups, in GPUs, of runs that this plan starts and whose promises were due, each run at its least width."""
    runs = {(each.namespace, each.name): each.spec for each in before.runs}
    starting = {each.run_key for each in plan.leases if each.spec.reason == "Start"}
    for promise in before.reservations:
        key = promise.namespace, promise.spec.run_ref.run_name
        if promise.status.stands and (promise.status.earliest_start or 0) <= plan.at and key in starting:
            starting.remove(key)
            yield from _groups(runs[key])


def _groups(run: RunSpec) -> Iterator[int]:
    least = run.min_gpus
    size = run.locality.group_gpus or least
    yield from (min(size, least - begun) for begun in range(0, least, size))


def _funded(plan: Plan) -> Iterator[int]:
    """Groups of all that this plan starts, or lets grow, on somebody's money, as wide as it is."""
    groups: Counter[tuple[object, int]] = Counter()
    for lease in plan.leases:
        if lease.spec.paid_by is not None:
            groups[lease.run_key, lease.spec.group] += len(lease.spec.slice.nodes)
    return iter(groups.values())


def _fits(groups: Iterable[int], free: Iterable[int]) -> bool:
    """Is there a way to lay each group in one domain? ``free``: GPUs of each domain."""
    ways = {tuple(free)}
    for group in sorted(groups, reverse=True):
        ways = {
            (*way[:place], left - group, *way[place + 1 :])
            for way in ways
            for place, left in enumerate(way)
            if left >= group
        }
    return bool(ways)
