"""Closures of open leases in this cycle, when and why: the one list of what a cycle closes before it plans."""

from collections.abc import Mapping

from jobtree.api.kinds.lease import ClosureReason
from jobtree.world.plan import Closure
from planner.state.replay import Fates
from policies.cuts.order import Cuts
from policies.inputs.claims import LeaseKey, LeaseRow, RunKey
from policies.lifecycle.endings import Ending
from policies.lifecycle.failures import Place


def closures_of(
    leases: list[LeaseRow],
    ended: Mapping[RunKey, Ending],
    lost: frozenset[Place],
    cuts: Cuts,
    closing: Mapping[LeaseKey, ClosureReason],
    at: int,
) -> list[Closure]:
    """Open leases of runs that end, spares on failed nodes, and what is cut, in (namespace, name) order.

    ``closing``: what ends of runs that live on, and why.
    """
    found = []
    for lease in leases:
        if lease.key in cuts.leases:
            found.append(cuts.leases[lease.key].closure(lease, at))
            continue
        ending, end, why = ended.get(lease.run_key), at, "NodeFailure"
        if lease.key in closing:
            why = closing[lease.key]
        elif lease.closed or (ending is None and (lease.active or lease.place not in lost)):
            continue
        elif ending is not None:
            end, why = ending.ended, ending.reason
        found.append(
            Closure(namespace=lease.namespace, name=lease.name, ended=max(lease.start, min(end, at)), reason=why)
        )
    return found


def ends_of(closures: list[Closure]) -> dict[LeaseKey, int]:
    """Ends by (namespace, lease)."""
    return {(closure.namespace, closure.name): closure.ended for closure in closures}


def fates_of(closures: list[Closure], malleable: frozenset[RunKey]) -> Fates:
    """Closures as the replay of the seconds since the last cycle asks: limits apart from all other ends."""
    limits = ends_of([closure for closure in closures if closure.reason == "TimeLimit"])
    return Fates(limits, ends_of([closure for closure in closures if closure.reason != "TimeLimit"]), malleable)
