"""Limits of the search: how large a problem may be for each way of solving it, and how much is tried (docs/planner.md).

None is a time: with the same effort the same snapshot gives the same plan, whatever the machine does.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Effort:
    """One value, handed down from the planner's front; what it is by default is what every cycle uses.

    ``exact``: most runs that wait of a problem that is solved to the end, with all stages on one master.
    ``small``: most integer columns of a master that is solved whole at once, and again with kinds split; ``middle``: of
    a block that is solved whole after its bands; ``again``: of a large master that is solved once more near its first
    solution, where its plan ends more than ``close`` times Policy ``solver.gap`` from the bound.
    ``rounds``: most times that a master is solved, each with more kinds split; ``near``: how often ``solver.gap`` a
    large problem may end away from its bound and not be solved again. ``seats``: most seats of a master that goes down
    to nodes, where its domains left a gap. ``nodes``, ``exact_nodes``: most branch-and-bound nodes of one solve.
    ``paid_in_parts``: columns from which on starts and payers are sought in the relaxation first; ``paid_whole``: most
    columns of such a model that may be solved as it is. ``largest_part``: most of a master's integer columns that one
    component may have: else the parts are no easier than the whole. ``workers``: threads that solve components side by
    side; no answer depends on them. ``prices``: most bounds that a plan has prices of, the largest; ``price_terms``:
    most terms of a relaxation that they are made of. ``moments_of_many``: most known times that are looked at where
    many runs wait, and no more than make ``looked_at`` nodes, but ``fewest_moments`` at least.
    """

    exact: int = 100
    small: int = 400
    middle: int = 3_000
    again: int = 4_000
    close: int = 2
    rounds: int = 8
    near: int = 10
    seats: int = 1_000
    nodes: int = 2_000
    exact_nodes: int = 50_000
    paid_in_parts: int = 10_000
    paid_whole: int = 20_000
    largest_part: float = 0.25
    workers: int = 4
    prices: int = 32
    price_terms: int = 500_000
    moments_of_many: int = 12
    fewest_moments: int = 4
    looked_at: int = 60_000

    def few(self, waiting: int) -> bool:
        """Do so few runs wait that each keeps the order of its payers, and is weighed with all others to the end?"""
        return waiting <= self.exact

    def moments(self, waiting: int, nodes: int, few: int) -> int:
        """Most known times that are looked at, ``few`` where few wait: each is a world, and costs by its nodes."""
        return (
            few
            if self.few(waiting)
            else max(self.fewest_moments, min(self.moments_of_many, self.looked_at // max(1, nodes)))
        )


USUAL = Effort()
"""What every cycle uses."""
