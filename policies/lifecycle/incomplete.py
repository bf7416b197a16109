"""Gangs that are not whole any more though no node failed: a Lease of theirs was deleted or edited (spec §2, §9).

    Active GPUs < the least width    or    0 < GPUs of a group, its Active ones < its size

What is left of such a run stops, as where it lost a node. GPUs beyond its width, sizes or spares are no lack; but it
takes nothing more, for only a run of which each group is whole is given Leases.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from jobtree.api.values.counted import counted
from policies.inputs.claims import LeaseRow
from policies.inputs.runs import RunRow
from policies.inputs.shapes import lower

_WHY = "a Lease that it needs is gone or says something else"


def lack_of(run: RunRow, leases: Iterable[LeaseRow]) -> str:
    """Lack of a run with these open leases, as a clause; empty where it is whole, or holds nothing."""
    held = gpus_by_group(leases, active=True)
    width = sum(held.values())
    if held and width < run.width_min:
        return f"It holds {width} of its {counted(run.width_min, 'GPU')}: {_WHY}"
    sizes = _sizes_of(run) if held else ()
    for group in sorted(held):
        if group < len(sizes) and held[group] < sizes[group]:
            return f"Its group {group} holds {held[group]} of {counted(sizes[group], 'GPU')}: {_WHY}"
    return ""


def is_whole(run: RunRow, leases: Sequence[LeaseRow]) -> bool:
    """Does each group of a run with these open leases hold its size, no less and no more, the first among them?

    Some of its standbys may be lost, but no group has more of them than its spares.
    """
    held, sizes = gpus_by_group(leases, active=True), _sizes_of(run)
    first = run.group > 0 or 0 in held
    standing = max(gpus_by_group(leases, active=False).values(), default=0)
    sized = all(group < len(sizes) and gpus == sizes[group] for group, gpus in held.items())
    return first and sized and standing <= run.spares * run.unit


def gpus_by_group(leases: Iterable[LeaseRow], *, active: bool) -> dict[int, int]:
    """Active or standby GPUs by group, also of groups that hold none."""
    held: dict[int, int] = {}
    for lease in leases:
        held[lease.group] = held.get(lease.group, 0) + (lease.gpus if lease.active == active else 0)
    return held


def _sizes_of(run: RunRow) -> tuple[int, ...]:
    return _sizes(run.max_total or run.total, run.width_min, run.step or 0, run.group)


@lru_cache(maxsize=1024)
def _sizes(most: int, least: int, step: int, group: int) -> tuple[int, ...]:
    """Sizes of a run's groups at its greatest width."""
    lowered = lower(most, least, step, group, 0, 0, spread=True)
    return lowered.groups(lowered.steps)
