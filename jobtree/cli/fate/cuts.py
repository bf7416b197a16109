"""What `explain` says of cuts: those that a run has to reckon with, and those that were made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from jobtree.api.values.counted import named

if TYPE_CHECKING:
    from jobtree.api import Lease, Run


def lines(run: Run, leases: Iterable[Lease]) -> list[str]:
    """Of a run and all its leases; empty where there is nothing to be said."""
    return [*_ahead(run), *_made(run, leases)]


def _ahead(run: Run) -> Iterator[str]:
    status = run.status
    if not status.conflict_sets:
        return
    chance = float(status.kill_probability or 0)
    yield f"in the way of {named(list(status.conflict_sets))}: loses all with a chance of {chance:.1%}"
    ways = ["let it save its work (runtime.checkpoint)"]
    if run.spec.malleable is not None:
        ways.insert(0, "`kubectl runs shrink` it")
    if status.funding is not None and status.funding.unfunded_gpus:
        ways.append("have more quota paid for it")
    yield f"until then: {named(ways)}"


def _made(run: Run, leases: Iterable[Lease]) -> Iterator[str]:
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
        yield f"recompute it: `kubectl runs verify {run.name}`"
