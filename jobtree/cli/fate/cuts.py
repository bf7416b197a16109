"""What `explain` says of cuts: those to be reckoned with, what a run would lose first, and those that were made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from jobtree.api.values.counted import counted, named
from jobtree.cli.common import lookup

if TYPE_CHECKING:
    from jobtree.api import Lease, Run
    from jobtree.api.kinds.reservation import Remedy, Reservation
    from jobtree.world.reading.intake import Intake


def lines(run: Run, leases: Sequence[Lease], intake: Intake, at: int, reach: str) -> list[str]:
    """Of a run and all its leases at ``at`` (Unix seconds); empty where there is nothing to be said.

    ``reach``: options that name the cluster, for commands that are to be typed.
    """
    return [*_ahead(run, intake.reservations), *_first(run, leases, intake, at), *_made(run, leases, reach)]


def _ahead(run: Run, reservations: Iterable[Reservation]) -> Iterator[str]:
    status = run.status
    if not status.conflict_sets:
        return
    by_name = {f"{each.namespace}/{each.name}": each for each in reservations}
    for name in status.conflict_sets:
        promise = by_name.get(name)
        yield (
            f"in the way of {name}"
            if promise is None
            else f"in the way of {asked(f'{run.namespace}/{run.name}', promise)}"
        )
    chance = float(status.kill_probability or 0)
    yield (
        f"loses all with a chance of {chance:.1%}"
        if len(status.conflict_sets) == 1
        else (f"loses all for one of them with a chance of {chance:.1%}")
    )
    ways = ["let it save its work (runtime.checkpoint)"]
    if run.spec.malleable is not None:
        ways.insert(0, "`kubectl runs shrink` it")
    if status.funding is not None and status.funding.unfunded_gpus:
        ways.append("have more quota paid for it")
    yield f"until then: {named(ways)}"


def asked(run: str, promise: Reservation) -> str:
    """A promise that names a run (namespace/name): whose it is, when it is due, and what it takes of the run."""
    due = promise.status.earliest_start or promise.spec.earliest_start
    forecast = promise.status.forecast
    mine = [each for each in (forecast.remedies if forecast else ()) if each.run == run]
    taken = f", which takes {named([_taken(each) for each in mine])}" if mine else ""
    return f"{promise.namespace}/{promise.name}, for run {promise.spec.run_ref.run_name} at {due}{taken}"


def _taken(remedy: Remedy) -> str:
    gpus = counted(remedy.gpus, "GPU")
    words = {
        "ReclaimUnfunded": f"{gpus} without funding",
        "DropSpare": counted(remedy.gpus, "spare GPU"),
        "Shrink": f"{gpus} above its least width",
        "Lottery": f"all {gpus} if it is drawn",
    }
    return words[remedy.action]


def _first(run: Run, leases: Sequence[Lease], intake: Intake, at: int) -> Iterator[str]:
    """In which order a running run would lose what it holds, were it in the way of a promise that is due."""
    held = [lease for lease in leases if not lease.status.closed]
    active = [lease for lease in held if lease.spec.slice.role == "Active"]
    if not active:
        return
    width = lookup.active_gpus(held)
    steps = []
    if unfunded := lookup.unfunded_gpus(held):
        steps.append(f"{counted(unfunded, 'GPU')} without funding")
    if spares := sum(len(lease.spec.slice.nodes) for lease in held) - width:
        steps.append(counted(spares, "spare GPU"))
    least = run.spec.malleable.min_total_gpus if run.spec.malleable is not None else width
    if width > least and unfunded < width:
        top = max(lease.spec.group for lease in active)
        steps.append(f"{counted(width - least, 'GPU')} above its least width of {least}, from group {top} down")
    if unfunded < width:
        steps.append(
            f"all {counted(width, 'GPU')}, by the lottery, which may draw it {_drawable(run, active, intake, at)}"
        )
    yield f"would lose first: {'; then '.join(steps)}"


def _drawable(run: Run, active: Iterable[Lease], intake: Intake, at: int) -> str:
    """Say when: after a run's protection, which a swap does not renew, with a chain of secrets that may be used."""
    from jobtree.api import Policy, Time
    from jobtree.world.memory.lottery import NAME, Chain
    from policies.cuts.protection import Protection
    from policies.lifecycle.endings import since

    term = (intake.policy or Policy()).spec.lottery.term
    began = since(run.status.started, (lease.spec.interval.start for lease in active))
    chain = Chain.of(intake.config_map(NAME))
    opens = Protection(int(term), (chain and chain.opens) or 0).open_after(began)
    return "now" if opens <= at else f"from {Time(opens)} on"


def _made(run: Run, leases: Iterable[Lease], reach: str) -> Iterator[str]:
    from planner.remedies.record import Command

    drawn = False
    for lease in leases:
        cause, proof = lease.status.cause, lease.status.proof
        if cause is None:
            continue
        what = f"for {cause.reservation}" if cause.reservation else "for funded work"
        yield f"{lease.name} ended {lease.status.ended}: {lease.status.closure_reason} {what}, Plan {cause.plan}"
        if proof is not None:
            drawn = True
            yield f"  pick {proof.draw} with secret {proof.position} of the chain: {proof.secret}"
    if drawn:
        yield f"recompute it: `{Command(f'verify {run.name}', run.namespace).typed(reach)}`"
