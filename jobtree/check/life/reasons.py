"""When a lease may close for which reason (spec §1 Lease ``closureReason``, §6, §7).

Cuts for a promise are judged by what they are made for: `jobtree.check.time.cutting`.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple, get_args

from jobtree.api.kinds.lease import ClosureReason
from jobtree.check.case.case import Case
from jobtree.check.case.rows import Held, Run, RunKey
from jobtree.check.case.unplanned import Unplanned
from jobtree.check.life.eligibility import refusals
from jobtree.check.life.failures import Failures, Outliving
from jobtree.check.life.starts import upstream
from jobtree.world.plan import Wait

_MAY_END: Mapping[str, frozenset[str | None]] = {
    "Completed": frozenset({"Completed"}),
    "Failed": frozenset(get_args(ClosureReason)) - {"Completed"},
}
"""Reasons that a finished run's condition may give to what it still holds."""


class Ending(NamedTuple):
    """A lease that the plan closes, with its run."""

    outliving: Outliving
    lease: Held
    run: Run

    @property
    def case(self) -> Case:
        """The case."""
        return self.outliving.case

    @property
    def failures(self) -> Failures:
        """Nodes that have failed."""
        return self.outliving.failures


def is_justified(outliving: Outliving, lease: Held, reason: str) -> bool:
    """Whether snapshot and plan bear out a closure. What a finished or vanished run still holds may always close."""
    case, failures = outliving.case, outliving.failures
    if case.is_gone(lease):
        return reason == "RunDeleted"
    run = case.run_of(lease.run_key)
    if run is None:
        return reason == "NodeFailure" and failures.may_be(lease)
    if run.outcome is not None and reason in {run.outcome, run.outcome_reason} & _MAY_END[run.outcome]:
        return True
    rule = REASONS.get(reason)
    return rule is not None and rule(Ending(outliving, lease, run))


def limit_end(case: Unplanned, key: RunKey) -> int | None:
    """When the time limit of a run that holds leases ends it: never in the time that the last cycle has settled."""
    run = case.run_of(key)
    limit = None if run is None else run.time_limit if run.time_limit is not None else run.enforced_limit
    started = None if limit is None else case.started(key)
    if limit is None or started is None:
        return None
    return max(started + limit, settled(case, key))


def settled(case: Unplanned, key: RunKey) -> int:
    """Up to when what a run holds is settled: no end is earlier than the last cycle, or than a ledger tells."""
    leases = case.open_by.get(key, [])
    told = [when for lease in leases for when in (lease.start, *(entry[1] for entry in lease.funding[-1:]))]
    return max([*told, case.snapshot.since or 0])


def _completed(ending: Ending) -> bool:
    """Marked complete before any time limit, or all pods succeeded."""
    done, last = ending.run.completed_at, limit_end(ending.case, ending.lease.run_key)
    marked = done is not None and done <= ending.case.at and (last is None or done <= last)
    return marked or ending.case.pods_succeeded(ending.run.key)


def _failed(ending: Ending) -> bool:
    """Some pod failed, or found no place for long, and not with its node; or the gang is whole no more."""
    case, key = ending.case, ending.lease.run_key
    if any(each.active and ending.failures.is_sure(each) for each in case.open_by[key]):
        return False
    return case.pods_failed(key) or case.pods_displaced(key) or case.told.lacking[key]


def _timed_out(ending: Ending) -> bool:
    last = limit_end(ending.case, ending.lease.run_key)
    return last is not None and last <= ending.case.at


def _node_failed(ending: Ending) -> bool:
    """It lies on a node that has failed, or goes with what its run lost there: never more than has to."""
    outliving, key = ending.outliving, ending.lease.run_key
    if ending.failures.may_be(ending.lease):
        return True
    hit = any(ending.failures.may_be(each) for each in ending.case.open_by[key])
    return hit and outliving.kept(key) >= outliving.least(key)


def _swapped(ending: Ending) -> bool:
    """A standby on some of whose slots its group now works; what is left of them is spare still, in whole standbys."""
    case, lease = ending.case, ending.lease
    mine = [
        new
        for new in case.new_by.get(lease.run_key, ())
        if new.reason == "Swap" and (new.group, new.node) == (lease.group, lease.node)
    ]
    node = case.nodes.get(lease.node)
    there = {ordinal for ordinal in lease.ordinals if node is not None and ordinal < node.gpus}
    used = {ordinal for new in mine if new.active for ordinal in new.ordinals}
    dropped = there - {ordinal for new in mine for ordinal in new.ordinals}
    whole = len(there) == len(lease.ordinals) and not ending.outliving.is_pressed(lease.node)
    return not lease.active and not used.isdisjoint(there) and (not dropped or not whole)


def _swap_declined(ending: Ending) -> bool:
    """A standby of a group that lost a node and is not swapped, with somebody's funded work on its slots."""
    case, lease = ending.case, ending.lease
    lost = any(
        each.active and each.group == lease.group and ending.failures.may_be(each)
        for each in case.open_by[lease.run_key]
    )
    swapped = any(new.reason == "Swap" and new.group == lease.group for new in case.new_by.get(lease.run_key, ()))
    return lost and not swapped and not lease.active and ending.outliving.is_declined(lease)


def _reclaimed_by_spare(ending: Ending) -> bool:
    """Unfunded work, its spares too, some of whose slots a swap takes that could not do without; never more of it."""
    case, lease, outliving = ending.case, ending.lease, ending.outliving
    mine = case.open_by[lease.run_key]
    freed = [each for each in mine if each.key in case.closing and each.active]
    swaps = {slot for new in case.new if new.reason == "Swap" and new.active for slot in new.slots}
    taken = [each for each in freed if not swaps.isdisjoint(each.slots)]
    lost = {each.group for each in taken}
    least = outliving.width_without(ending.run, mine, lost)
    goes = taken if not ending.run.malleable else [each for each in taken if each.group == lease.group]
    return (
        bool(taken)
        and all(map(outliving.was_unfunded, taken))
        and outliving.kept(lease.run_key) >= least
        and not outliving.is_needless(goes)
    )


def _reclaimed(ending: Ending) -> bool:
    """Work that is unfunded by its own choice and has no notice, its spares too, some of whose nodes the plan gives to
    paid starts.

    Where its pods are still there, it gives way to a run that could start on its nodes, and waits until they are gone.
    """
    if ending.case.policy.opportunistic.notice:
        return False
    case, key = ending.case, ending.lease.run_key
    nodes = {new.node for new in case.new if new.payer is not None and new.reason == "Start"}
    freed = {each.node for each in case.open_by[key] if each.key in case.closing}
    is_used = bool(freed & nodes) or (
        _pods_stay(case, key, freed) and any(_is_wanted(case, each, freed) for each in case.plan.waits)
    )
    return ending.run.opportunistic and case.is_unfunded(ending.lease) and is_used


def _pods_stay(case: Case, key: RunKey, nodes: set[str]) -> bool:
    return any((each.namespace, each.run) == key and each.node in nodes and not each.ended for each in case.pods)


def _is_wanted(case: Case, wait: Wait, nodes: set[str]) -> bool:
    """Does a run wait for room that may lie on one of these nodes, with a payer, and following nobody?"""
    key = wait.namespace, wait.name
    run = case.run_of(key)
    if run is None or wait.never or case.phase_after(key) not in (None, "Pending") or not case.has_payer(run, case.at):
        return False
    if any(True for _ in upstream(case, key, run)):
        return False
    there = (case.nodes[name] for name in nodes if name in case.nodes)
    return any(not any(True for _ in refusals(case, key, run, node)) for node in there)


def own_shrink(case: Case, lease: Held) -> bool:
    """Whether the owner wants the run narrower, and its own shrink leaves no less than that, whatever is cut besides.

    Spares go with their group.
    """
    run = case.run_of(lease.run_key)
    if run is None or run.desired is None:
        return False
    active = [each for each in case.open_by[lease.run_key] if each.active]
    left = [each for each in active if not _shrinks(case, each)]
    group_goes = all(_shrinks(case, each) for each in active if each.group == lease.group)
    return sum(each.gpus for each in active) > run.desired <= sum(each.gpus for each in left) and group_goes


def _shrinks(case: Case, lease: Held) -> bool:
    """Does the plan close it for nobody's start?"""
    closure = case.closing.get(lease.key)
    return closure is not None and closure.reason == "Shrink" and not closure.made_room_for


def _shrunk(ending: Ending) -> bool:
    return own_shrink(ending.case, ending.lease)


REASONS: Mapping[str, Callable[[Ending], bool]] = {
    "RunDeleted": lambda ending: ending.run.deleting,
    "Completed": _completed,
    "Failed": _failed,
    "Cancelled": lambda ending: ending.run.state == "Cancelled",
    "Suspended": lambda ending: ending.run.state == "Suspended",
    "TimeLimit": _timed_out,
    "NodeFailure": _node_failed,
    "Swap": _swapped,
    "SwapDeclined": _swap_declined,
    "ReclaimedBySpare": _reclaimed_by_spare,
    "ReclaimUnfunded": _reclaimed,
    "Shrink": _shrunk,
    "DropSpare": _shrunk,
}
