"""Places: where a start that cuts make lies, and who pays."""

from collections.abc import Iterable
from typing import NamedTuple

from planner.state.state import State


class Place(NamedTuple):
    """Where a start lies, by name, and who pays for it: (budget, envelope), nearest first."""

    nodes: tuple[str, ...]
    payers: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, state: State, nodes: Iterable[int], payers: Iterable[int]) -> "Place":
        """Of nodes and envelopes by their numbers in a state."""
        names, envelopes = state.fleet.names, state.money.envelopes
        paying = (envelopes[payer] for payer in payers)
        return cls(tuple(names[node] for node in nodes), tuple((each.budget, each.name) for each in paying))
