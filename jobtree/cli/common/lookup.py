"""Finding things in an intake: a run by the name that a person gives, what it holds, what its status says."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from exporters.plans.nodelist import natural
from jobtree.api.kinds.base import ANNOTATION_COMPLETED
from jobtree.api.kinds.run import OVER, SPEAKS, UNPAID, IndexRun
from jobtree.api.values.counted import named as spelled
from jobtree.api.values.errors import Refusal
from jobtree.api.values.nearest import nearest
from jobtree.world.naming import arrays

if TYPE_CHECKING:
    from jobtree.api import Lease, Run
    from jobtree.api.kinds.lease import FundingClass
    from jobtree.api.kinds.meta import Condition
    from jobtree.world.reading.intake import Intake

RunKey = tuple[str, str]

UNFUNDED: Final = "unfunded"
"""The class of what nobody pays for."""
"""Phases that a run does not leave."""

_SPEAKS: Final = {**SPEAKS, "Running": "Running"}
"""The condition that speaks for each phase of a Run: of one that runs what its pods do, not why it was let in."""


def find_run(intake: Intake, name: str, namespace: str | None) -> Run:
    """The run of that name in ``namespace``; without one in the reader's, else the only run of that name anywhere.

    The name may be as commands print it, ``NAMESPACE/NAME`` or ``run/NAMESPACE/NAME``, or alone. Raises Refusal where
    there is none, with the nearest that there is, where there are several, or where two namespaces are said.
    """
    runs = arrays.Runs(intake.runs)
    key = _found(intake, [runs.there, [*_indices(runs, intake, name, namespace)]], name, namespace)
    run = runs.get(key)
    assert run is not None
    return run


def _indices(runs: arrays.Runs, intake: Intake, name: str, namespace: str | None) -> Iterator[RunKey]:
    """The names of indices of arrays that a person may mean by this one."""
    place, alone = _said(name, namespace)
    places = {run.namespace for run in intake.runs} if place is None else {place}
    return ((each, alone) for each in sorted(places) if arrays.array_of(runs.there, (each, alone)) is not None)


def find_holder(intake: Intake, name: str, namespace: str | None) -> RunKey:
    """Like `find_run`, and also a run that is gone, since leases outlive their run. Raises Refusal."""
    there = {(run.namespace, run.name) for run in intake.runs}
    gone = {lease.run_key for lease in intake.leases} - there
    indices = _indices(arrays.Runs(intake.runs), intake, name, namespace)
    return _found(intake, [there, {*indices}, gone], name, namespace)


def _found(intake: Intake, known: Sequence[Collection[RunKey]], name: str, namespace: str | None) -> RunKey:
    """The one that is meant among the known ones, the first of those before the others. Raises like `find_run`."""
    namespace, name = _said(name, namespace)
    for keys in known:
        named = [key for key in keys if key[1] == name and namespace in {None, key[0]}]
        here = (namespace or intake.namespace, name)
        if here in keys or len(named) == 1:
            return here if here in keys else named[0]
        if named:
            places = spelled(sorted((place for place, _ in named), key=natural))
            raise Refusal(f"there are runs called {name} in several namespaces ({places}); say which with -n NAMESPACE")
    for notice in intake.quarantined:
        if notice.kind == "Run" and notice.name == name and notice.namespace == (namespace or notice.namespace):
            raise Refusal(f"Run {notice.namespace}/{name} cannot be used: {notice.message}")
    where = f"in namespace {namespace}" if namespace else "in any namespace"
    near = _nearest([key for keys in known for key in keys], name, namespace)
    hint = "`kubectl runs state --all` lists them all" if near is None else f"did you mean {'/'.join(near)}?"
    raise Refusal(f"there is no run called {name} {where}; {hint}")


def _said(name: str, namespace: str | None) -> tuple[str | None, str]:
    """The namespace, None where none is said, and the name alone.

    Raises Refusal where two namespaces are said, or no name.
    """
    place, slash, alone = (name.removeprefix("run/") if name.count("/") > 1 else name).rpartition("/")
    if not alone.strip():
        raise Refusal(f"no run is named by {name!r}; `kubectl runs state --all` lists them all")
    if slash and namespace not in {None, place}:
        raise Refusal(f"{place}/{alone} is in namespace {place}, and -n says {namespace}; say one of them")
    return place or namespace, alone


def _nearest(keys: Sequence[RunKey], name: str, namespace: str | None) -> RunKey | None:
    """The run that was probably meant: of that very name elsewhere, else of one like it, there at best."""
    names = {each for _, each in keys}
    there = {each for place, each in keys if place == namespace}
    near = name if name in names else nearest(name, there) or nearest(name, names)
    if near is None:
        return None
    places = sorted((place for place, each in keys if each == near), key=natural)
    return nearest(namespace or "", places) or places[0], near


def object_key(run: Run) -> RunKey:
    """The object that a run lies in: itself, or the array that it is an index of."""
    return run.namespace, run.of if isinstance(run, IndexRun) else run.name


def array_of(run: IndexRun, intake: Intake) -> Run:
    """The array that an index is of."""
    return next(each for each in intake.runs if (each.namespace, each.name) == (run.namespace, run.of))


def annotated(intake: Intake, key: RunKey, patch: Mapping[str, Any]) -> Intake:
    """What is there, with a patch's annotations on that Run."""
    added = patch.get("metadata", {}).get("annotations", {})
    if not added:
        return intake

    def changed(run: Run) -> Run:
        metadata = msgspec.structs.replace(run.metadata, annotations={**run.metadata.annotations, **added})
        return msgspec.structs.replace(run, metadata=metadata)

    runs = (changed(run) if (run.namespace, run.name) == key else run for run in intake.runs)
    return dataclasses.replace(intake, runs=tuple(runs))


def holders(intake: Intake, key: RunKey) -> Callable[[RunKey], bool]:
    """Of the runs that leases name: is it the one of this name, or an index of this array?"""
    run = next((run for run in intake.runs if (run.namespace, run.name) == key), None)
    array = None if run is None else run.spec.array
    if array is None:
        return lambda each: each == key

    def is_mine(each: RunKey) -> bool:
        found = arrays.split(each[1])
        return found is not None and (each[0], found[0]) == key and array.has(found[1])

    return is_mine


def objects(intake: Intake) -> Mapping[RunKey, RunKey]:
    """Indices that hold leases, by their name the array's."""
    runs = {(run.namespace, run.name): run for run in intake.runs}
    names = {lease.run_key for lease in intake.leases} - runs.keys()
    return {key: (key[0], found[0].name) for key in names if (found := arrays.array_of(runs, key)) is not None}


def open_leases(leases: Iterable[Lease], lies_in: Mapping[RunKey, RunKey] | None = None) -> dict[RunKey, list[Lease]]:
    """The leases that are open now, by run; ``lies_in``: names under which those of other names are told."""
    found: dict[RunKey, list[Lease]] = defaultdict(list)
    for lease in leases:
        if not lease.status.closed:
            found[(lies_in or {}).get(lease.run_key, lease.run_key)].append(lease)
    return found


def active_gpus(leases: Iterable[Lease]) -> int:
    """GPUs of the Active ones among them."""
    return sum(len(lease.spec.slice.nodes) for lease in leases if lease.spec.slice.role == "Active")


def unfunded_gpus(leases: Iterable[Lease]) -> int:
    """GPUs of the Active ones that nobody pays for now, whoever their payer is."""
    return active_gpus(lease for lease in leases if is_unfunded(lease))


def is_unfunded(lease: Lease) -> bool:
    """Does nobody pay for it now, or did nobody when it ended?"""
    return lease.spec.paid_by is None or told_class(lease) == UNFUNDED


def told_class(lease: Lease) -> FundingClass | None:
    """The class that its ledger says now; None where no cycle has begun one: then it is its payer's."""
    return lease.status.funding[-1].class_ if lease.status.funding else None


def condition(run: Run, kind: str) -> Condition | None:
    """One condition of a run, None while no cycle has seen it."""
    return next((each for each in run.status.conditions if each.type == kind), None)


def phase(run: Run) -> str:
    """Its phase; Pending while no cycle has seen it."""
    return run.status.phase or "Pending"


def over(run: Run) -> str:
    """How a run has ended, or will, as it is cancelled: ``Failed since TIME (Cancelled)``; empty where it goes on."""
    said = speaker(run)
    if phase(run) not in OVER:
        return "Cancelled" if run.spec.state == "Cancelled" else ""
    since = f" since {run.status.ended}" if run.status.ended is not None else ""
    why = f" ({said.reason})" if said is not None and said.reason != phase(run) else ""
    return f"{phase(run)}{since}{why}"


def again(run: Run) -> str:
    """The state of a run that is `over`, and what to do for another one like it."""
    what = f"its array {run.of}" if isinstance(run, IndexRun) else "it"
    return f"is {over(run)}, which is final; submit {what} under another name, or delete {what} first"


def unpaid_words(run: Run) -> Condition | None:
    """The condition that says why GPUs of a run are unfunded, None where it does not run or none are."""
    said = condition(run, SPEAKS["Running"]) if phase(run) == "Running" else None
    return said if said is not None and said.reason in UNPAID else None


def speaker(run: Run) -> Condition | None:
    """The condition that says why the run is in its phase; an index has no other than its array's status keeps."""
    if (unpaid := unpaid_words(run)) is not None:
        return unpaid
    return condition(run, (SPEAKS if isinstance(run, IndexRun) else _SPEAKS)[phase(run)])


def wanted(run: Run) -> int:
    """The width that the run asks for now: what it grows towards once it runs, else what it may start with; an array's
    is what its status says, of all indices that are wanted at once.
    """
    if run.spec.array is not None and run.status.width is not None:
        return run.status.width.desired
    return run.spec.desired_gpus if phase(run) == "Running" else run.spec.total_gpus


def underway(run: Run, leases: Sequence[Lease]) -> str:
    """What the next cycle will do with the run because it was asked to, empty where that is done or nothing was asked.

    ``leases``: the open ones that it holds.
    """
    said = speaker(run)
    if phase(run) in OVER:
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
