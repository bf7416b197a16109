"""A cycle for now on a file whose last time is long ago: how far it jumps, what ends by that, and whether to go on."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from jobtree.api import Time
from jobtree.api.values.counted import counted
from jobtree.api.values.errors import Refusal
from jobtree.api.values.scalars import DAY, HOUR
from jobtree.cli.common import show
from jobtree.cli.common.numbers import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from jobtree.api.kinds.budget import Envelope, UseCap
    from jobtree.world.reading.intake import Intake

FAR: Final = DAY
"""Seconds that a cycle may jump without a word."""
_ASKED: Final = frozenset({"Completed", "Cancelled", "Suspended", "RunDeleted"})
"""Endings that somebody asked for: no jump of the clock makes them."""
_NAMED: Final = 5


def agree(intake: Intake, at: int, *, yes: bool) -> None:
    """Warns where a cycle at ``at``, the clock's time, jumps far and ends something by it; on a terminal it asks.

    ``yes``: it does not ask. Raises Refusal where the answer is no.
    """
    last = last_time(intake, at)
    if last is None or at - last <= FAR:
        return
    ends = _ends(intake, last, at)
    if not ends:
        return
    jump = f"this cycle is for now, {Time(at)}, {show.age(at - last)} after {last}"
    show.warn([f"no --at was given: {jump}; {ends}; to go on from where the file is, say --at {Time(last + 60)}"])
    if yes or sys.stdin is None or not sys.stdin.isatty():
        return
    sys.stderr.write("Go on? [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        raise Refusal(f"nothing was written; to go on from where the file is, say --at {Time(last + 60)}")


def last_time(intake: Intake, at: int) -> Time | None:
    """The last cycle's time; before the first one the newest that the file tells of its runs and leases, before ``at``.

    None where it tells none.
    """
    if intake.last_cycle is not None:
        return intake.last_cycle
    told = [run.metadata.creation_timestamp for run in intake.runs]
    told += [when for lease in intake.leases for when in (lease.spec.interval.start, lease.status.ended)]
    return max((when for when in told if when is not None and when < at), default=None)


def _ends(intake: Intake, last: int, at: int) -> str:
    """What ends because of the jump, as clauses; empty where nothing does."""
    from exporters.plans.nodelist import natural
    from jobtree.world.tables.snapshot import take
    from planner.state.derive import state_of

    state = state_of(take(intake), at)
    runs = [f"{'/'.join(key)} ({end.reason})" for key, end in state.endings.items() if end.reason not in _ASKED]
    windows = [
        f"{budget.name}/{name}"
        for budget in intake.budgets
        for name, end in (*_closing(budget.spec.envelopes), *_closing(budget.spec.use_caps))
        if last < end <= at
    ]
    parts = [
        f"{counted(len(found), *words)}: {_some(sorted(found, key=natural))}"
        for found, words in ((runs, ("run ends", "runs end")), (windows, ("window closes", "windows close")))
        if found
    ]
    closed = {(each.namespace, each.name): each.ended for each in state.closures if each.reason not in _ASKED}
    if closed:
        leases = [lease for lease in intake.leases if (lease.namespace, lease.name) in closed]
        used = sum(
            len(each.spec.slice.nodes) * max(0, closed[each.namespace, each.name] - max(last, each.spec.interval.start))
            for each in leases
        )
        hours = counted(plain(used / HOUR), "GPU-hour")
        parts.append(f"{counted(len(leases), 'lease closes', 'leases close')} after {hours} more")
    return ", ".join(parts)


def _closing(bounds: Iterable[Envelope | UseCap]) -> Iterator[tuple[str, Time]]:
    return ((each.name, each.end) for each in bounds if each.end is not None)


def _some(names: Sequence[str]) -> str:
    more = f", and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
