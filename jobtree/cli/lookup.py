"""Finding things in an intake: a run by the name that a person gives, what it holds, what its status says."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from exporters.nodelist import natural
from jobtree.api.base import ANNOTATION_COMPLETED
from jobtree.api.counted import named as spelled
from jobtree.api.errors import Refusal

if TYPE_CHECKING:
    from jobtree.api import Lease, Run
    from jobtree.api.meta import Condition
    from jobtree.world.intake import Intake

RunKey = tuple[str, str]

TERMINAL: Final = frozenset({"Completed", "Failed"})
"""Phases that a run does not leave."""

#: The condition that speaks for each phase.
_SPEAKS = {
    "Failed": "Failed",
    "Completed": "Completed",
    "Running": "Running",
    "Waiting": "Blocked",
    "Pending": "Admitted",
}


def find_run(intake: Intake, name: str, namespace: str | None) -> Run:
    """The run of that name in ``namespace``; without one in the reader's, else the only run of that name anywhere.

    Raises Refusal where there is none, or several.
    """
    named = [run for run in intake.runs if run.name == name]
    here = [run for run in named if run.namespace == (namespace or intake.namespace)]
    if here:
        return here[0]
    if namespace is None and len(named) == 1:
        return named[0]
    if namespace is None and named:
        places = spelled(sorted((run.namespace for run in named), key=natural))
        raise Refusal(f"there are runs called {name} in several namespaces ({places}); say which with -n NAMESPACE")
    for notice in intake.quarantined:
        if notice.kind == "Run" and notice.name == name and notice.namespace == (namespace or notice.namespace):
            raise Refusal(f"Run {notice.namespace}/{name} cannot be used: {notice.message}")
    where = f"in namespace {namespace}" if namespace else "in any namespace"
    raise Refusal(f"there is no run called {name} {where}; `kubectl runs state --all` lists them all")


def find_holder(intake: Intake, name: str, namespace: str | None) -> RunKey:
    """Like `find_run`, and also a run that is gone, since leases outlive their run. Raises Refusal."""
    gone = {lease.run_key for lease in intake.leases} - {(run.namespace, run.name) for run in intake.runs}
    places = [key for key in sorted(gone) if key[1] == name and namespace in {None, key[0]}]
    if len(places) == 1 and not any(run.name == name for run in intake.runs):
        return places[0]
    run = find_run(intake, name, namespace)
    return run.namespace, run.name


def open_leases(leases: Iterable[Lease]) -> dict[RunKey, list[Lease]]:
    """The leases that are open now, by run."""
    found: dict[RunKey, list[Lease]] = defaultdict(list)
    for lease in leases:
        if not lease.status.closed:
            found[lease.run_key].append(lease)
    return found


def active_gpus(leases: Iterable[Lease]) -> int:
    """GPUs of the Active ones among them."""
    return sum(len(lease.spec.slice.nodes) for lease in leases if lease.spec.slice.role == "Active")


def unfunded_gpus(leases: Iterable[Lease]) -> int:
    """GPUs of the Active ones that nobody pays for now, whoever their payer is."""
    return active_gpus(lease for lease in leases if is_unfunded(lease))


def is_unfunded(lease: Lease) -> bool:
    """Does nobody pay for it now, or did nobody when it ended?"""
    ledger = lease.status.funding
    return ledger[-1].class_ == "unfunded" if ledger else lease.spec.paid_by is None


def condition(run: Run, kind: str) -> Condition | None:
    """One condition of a run, None while no cycle has seen it."""
    return next((each for each in run.status.conditions if each.type == kind), None)


def phase(run: Run) -> str:
    """Its phase; Pending while no cycle has seen it."""
    return run.status.phase or "Pending"


def speaker(run: Run) -> Condition | None:
    """The condition that says why the run is in its phase."""
    return condition(run, _SPEAKS[phase(run)])


def wanted(run: Run) -> int:
    """The width that the run asks for now: what it grows towards once it runs, else what it may start with."""
    return run.spec.desired_gpus if phase(run) == "Running" else run.spec.total_gpus


def underway(run: Run, leases: Sequence[Lease]) -> str:
    """What the next cycle will do with the run because it was asked to, empty where that is done or nothing was asked.

    ``leases``: the open ones that it holds.
    """
    said = speaker(run)
    if phase(run) in TERMINAL:
        asked = ""
    elif ANNOTATION_COMPLETED in run.metadata.annotations:
        asked = "completing"
    elif run.spec.state == "Cancelled":
        asked = "cancelling"
    elif run.spec.state == "Suspended":
        asked = "suspending" if leases or not said or said.reason != "Suspended" else ""
    else:
        asked = "resuming" if said and said.reason == "Suspended" else ""
    return f"{asked} at the next cycle" if asked else ""
