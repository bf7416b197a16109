"""Caps that do not matter to what may start: those that all free GPUs together could not fill, and those without rest.

    idle:   Σ free GPUs where its payments may lie × largest weight ≤ limit − used
    spent:  limit − used < weight of one GPU, whatever gives way: no payment that touches it can be made

Large problems leave out both; then fewer payers differ from one another, and so do fewer types of runs. Where it is
asked what a rise would be worth (planner.plan.prices), what is spent stays in: a rise opens it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from policies.caps.cap import CapBook, Lane
from policies.caps.uses import EVERYBODY

Touches = tuple[tuple[int, int], ...]
"""(cap, weight per milli-GPU)."""


@dataclass(frozen=True)
class Leeway:
    """``left``: what each cap leaves at most, in its unit; ``least``: what a spare or a GPU weighs, whatever is less.

    ``free``: GPUs by region of money; ``idle``: caps that are never reached; ``rises``: nothing counts as spent.
    """

    book: CapBook
    left: Sequence[int]
    least: int
    free: Mapping[int, int]
    idle: frozenset[int]
    rises: bool
    _known: dict[tuple[Lane, int], Touches | None] = field(default_factory=dict)

    @classmethod
    def of(
        cls, book: CapBook, used: Sequence[int], least: Sequence[int], free: Mapping[int, int], *, rises: bool = False
    ) -> "Leeway":
        """``used``: per cap, what running work takes, and at ``least``, whatever of it is recalled; ``free``: by site.

        Time limits are of no account: the longest time counts. ``rises``: for bounds of which one more unit is thought
        of. Then no lane is spent, each site has a GPU more.
        """
        left = [max(0, cap.limit - taken) for cap, taken in zip(book.caps, least, strict=True)]
        regions: dict[int, int] = {}
        for site, gpus in free.items():
            if gpus or rises:
                regions[book.money.region[site]] = regions.get(book.money.region[site], 0) + gpus + rises
        most: dict[int, dict[int, int]] = {}
        for envelope, sites in enumerate(book.money.pays_on):
            for region in sorted(sites & regions.keys()):
                for loan in (False, True):
                    for cap, weight in book.touches(Lane(envelope, loan, region, None, EVERYBODY)):
                        weights = most.setdefault(cap, {})
                        weights[region] = max(weight, weights.get(region, 0))
        idle = frozenset(
            cap
            for cap, taken in enumerate(used)
            if sum(1000 * weight * regions[region] for region, weight in most.get(cap, {}).items())
            <= book.caps[cap].limit - taken
        )
        return cls(book, left, min(1000, book.money.policy.spares.discount_milli), regions, idle, rises)

    def touches(self, lane: Lane, milli: int) -> Touches | None:
        """The caps that could bind on a lane; None where it cannot pay for one GPU that weighs ``milli``.

        The lane's site is a region of money.
        """
        key = (lane, milli)
        if key not in self._known:
            touched = self.book.touches(lane)
            spent = not self.rises and any(self.left[cap] < weight * milli for cap, weight in touched)
            dead = spent or lane.site not in self.free
            self._known[key] = None if dead else tuple(pair for pair in touched if milli and pair[0] not in self.idle)
        return self._known[key]
