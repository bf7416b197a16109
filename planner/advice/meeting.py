"""Meeting of two runs: the caps that both of their payers count against, and the nodes that both may use."""

from dataclasses import dataclass

import numpy as np

from jobtree.api.values.counted import counted
from planner.state.state import State
from policies.caps.cap import Lane, amounts
from policies.inputs.claims import RunKey
from policies.inputs.runs import RunRow
from policies.model.payers import payers


@dataclass(frozen=True)
class Bound:
    """A cap that both runs' payers count against, in its weighed unit.

    ``needs``: what each run's least width would weigh there, if all of it did; 0 for one that holds its GPUs already.
    """

    name: str
    unit: str
    scale: int
    limit: int
    used: int
    needs: tuple[int, int]

    @property
    def tight(self) -> bool:
        """Has one of the two no room there?"""
        return self.used + max(self.needs) > self.limit

    def words(self, one: str, other: str) -> str:
        """``org-a/gpus: 4 of 8 GPUs taken, default/r would count 8``: those who have no room there alone."""
        used, limit, *needs = amounts((self.used, self.limit, *self.needs), self.scale)
        taken = f"{self.name}: {used} of {counted(limit, self.unit)} taken"
        asking = zip((one, other), self.needs, needs, strict=True)
        short = [f"{name} would count {said}" for name, need, said in asking if self.used + need > self.limit]
        return ", ".join([taken, *short])


@dataclass(frozen=True)
class Meeting:
    """``bounds``: tight caps, in the book's order; ``loose``: how many others both count against.

    ``domains``: where both may have GPUs; ``free``, ``largest``: GPUs that are free there, in all and in one domain.
    """

    bounds: list[Bound]
    loose: int
    domains: int
    free: int
    largest: int


def meeting(state: State, one: RunKey, other: RunKey) -> Meeting:
    """Find what two runs meet at, with what ``state`` leaves."""
    runs = (state.runs[one], state.runs[other])
    weights = [_caps(state, run) for run in runs]
    shared = sorted(weights[0].keys() & weights[1].keys())
    asks = [key not in state.held for key in (one, other)]
    bounds = [_bound(state, cap, (weights[0][cap] * asks[0], weights[1][cap] * asks[1])) for cap in shared]
    there = state.fleet.is_on(state.sites_for(runs[0]) & state.sites_for(runs[1]))
    free = np.where(there, np.asarray(state.room().free, dtype=np.int64), 0)
    per_domain = np.bincount(state.fleet.domain, weights=free, minlength=1)
    return Meeting(
        bounds=[bound for bound in bounds if bound.tight],
        loose=sum(not bound.tight for bound in bounds),
        domains=len(set(state.fleet.domain[there].tolist())),
        free=int(free.sum()),
        largest=int(per_domain.max(initial=0)),
    )


def _caps(state: State, run: RunRow) -> dict[int, int]:
    """Cap → the most that the run's least width weighs against it."""
    if run.is_cpu:
        return {}
    found: dict[int, int] = {}
    milli = 1000 * run.width_min + state.policy.spares.discount_milli * run.lowered().spare_gpus
    for payer in payers(state.money, run)[0]:
        for site in sorted(state.sites_for(run) & state.money.paid_on(payer.envelope, payer.watch.off)):
            lane = Lane(payer.envelope, payer.loan, state.money.region[site], payer.limit, payer.watch.on)
            for cap, weight in state.book.touches(lane):
                found[cap] = max(found.get(cap, 0), weight * milli)
    return found


def _bound(state: State, number: int, needs: tuple[int, int]) -> Bound:
    cap = state.book.caps[number]
    name = cap.place
    return Bound(name, cap.measure.unit, cap.measure.scale, cap.limit, state.funded.used[number], needs)
