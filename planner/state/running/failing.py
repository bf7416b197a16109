"""A world in which nodes failed, what becomes of it, and which groups of a run go with those that it lost (spec §7)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from jobtree.api.kinds.lease import ClosureReason
from policies.inputs.claims import LeaseKey, LeaseRow, RunKey
from policies.inputs.fleet import Fleet
from policies.inputs.runs import RunRow
from policies.lifecycle.endings import Ending
from policies.lifecycle.failures import Place

Held = Mapping[RunKey, list[LeaseRow]]


@dataclass(frozen=True)
class Mending:
    """``closing``: leases that end beside those of runs that end; ``swaps``: leases that open in their place, paid as
    the spares were; ``endings``: of all runs that end, after it.
    """

    closing: dict[LeaseKey, ClosureReason]
    swaps: list[LeaseRow]
    endings: dict[RunKey, Ending]


@dataclass(frozen=True)
class Failing:
    """A world in which nodes failed. ``held``: open leases by run; ``lost``: failed nodes; ``unsure``: runs that cannot
    be read, or one of whose Leases cannot; ``is_well``: do the pods of a run on other nodes than these run on?
    ``sites``: where a run may lie now; ``nodes``: most branch-and-bound nodes of the choice of standbys.
    """

    runs: Mapping[RunKey, RunRow]
    held: Held
    endings: Mapping[RunKey, Ending]
    lost: frozenset[Place]
    unsure: frozenset[RunKey]
    fleet: Fleet
    is_well: Callable[[RunRow, set[str]], bool]
    sites: Callable[[RunRow], frozenset[int]]
    at: int
    cycle: str
    nodes: int


def groups_dropped(run: RunRow, leases: list[LeaseRow], lacking: set[int]) -> set[int] | None:
    """The groups that go of a run that lives on without those ``lacking`` standbys; None where it does not."""
    if not lacking or not run.malleable:
        return set() if not lacking else None
    sizes: dict[int, int] = {}
    for lease in leases:
        if lease.active:
            sizes[lease.group] = sizes.get(lease.group, 0) + lease.gpus
    left = sorted(group for group in sizes if group not in lacking)
    while left and (sum(sizes[group] for group in left) - run.width_min) % (run.step or 1):
        left.pop()
    if sum(sizes[group] for group in left) < run.width_min or (not run.group and 0 not in left):
        return None
    return sizes.keys() - set(left)
