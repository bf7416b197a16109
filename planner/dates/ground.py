"""What a promise by cuts is weighed on beside work and promises: nodes that its run may use, others there, the Policy.

    ground = SHA-256(Policy digest, Σ SHA-256(node) mod 2²⁵⁶ over the nodes that take its run[, first second of draws])

A sum, so that it is the same however nodes are put together as sites; each node is hashed once a cycle.
"""

import hashlib
from functools import cached_property
from typing import Final

import numpy as np

from planner.placement.room import Foreign
from planner.state.state import State
from policies.inputs.claims import RunKey

_SUM: Final = 1 << 256
_NOTHING: Final = Foreign()


class Ground:
    """``state``: of the world as the plan leaves it; ``policy``: SHA-256 of the Policy, hex."""

    def __init__(self, state: State, policy: str) -> None:
        """Nothing is looked at before it is asked for."""
        self.state = state
        self.policy = policy

    def of(self, key: RunKey) -> str:
        """SHA-256, hex, of what a run's promise by cuts hangs on."""
        total = sum(self._sites[site] for site in self.state.sites_for(self.state.runs[key])) % _SUM
        draws = self.state.protection.draws
        return hashlib.sha256(f"{self.policy} {total:064x}{f' {draws}' if draws else ''}".encode()).hexdigest()

    @cached_property
    def _sites(self) -> list[int]:
        """Sums by site, over its nodes that take work."""
        fleet = self.state.fleet
        sums = [0] * fleet.site_count
        for node in np.flatnonzero(fleet.takes_work).tolist():
            sums[int(fleet.site[node])] += int.from_bytes(hashlib.sha256(self._node(node).encode()).digest())
        return sums

    def _node(self, node: int) -> str:
        fleet = self.state.fleet
        other = self.state.foreign.get(fleet.names[node], _NOTHING)
        sizes = (fleet.gpus, fleet.cpu_milli, fleet.memory, fleet.max_pods)
        has = tuple(int(size[node]) for size in sizes)
        used = other.gpus, other.cpu_milli, other.memory, other.pods, sorted(other.slots)
        return repr((fleet.names[node], *fleet.domains[int(fleet.domain[node])], has, used))
