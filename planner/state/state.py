"""The state that is planned on: what a snapshot means at a time, and what may be asked of it."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial

import numpy as np

from jobtree.api.kinds.policy import PolicySpec
from jobtree.world.plan import Closure
from planner.effort import USUAL, Effort
from planner.placement.room import Foreign, Room
from planner.state.closing import ends_of
from planner.state.lower import Asked, Waiting
from planner.state.replay import Turn
from policies.caps.cap import CapBook
from policies.cuts.protection import Protection
from policies.funding.classes import Funded
from policies.funding.ledger import Spent
from policies.inputs.claims import LeaseKey, LeaseRow, RunKey
from policies.inputs.fleet import Fleet
from policies.inputs.money import Money
from policies.inputs.runs import RunRow
from policies.inputs.unread import Unread
from policies.lifecycle import unweighed
from policies.lifecycle.arrays import ArrayRow
from policies.lifecycle.endings import Ending, limit_ends
from policies.model import gangs, trees
from policies.model.problem import Problem
from policies.promises import funds
from policies.promises.holds import NOTHING, Holds


@dataclass
class State:
    """Everything derived from a snapshot before a model is built.

    ``leases`` and ``held``, open leases after this cycle's endings, have their ledgers up to the second before ``at``:
    with ``turns``, how they turned since the last cycle. ``taken``: ``spent``, and what frozen work takes beside it;
    ``rooms``: what is free, once it has been counted; ``asked``: who pays for what waits, likewise. ``changed``: when a
    cycle last was given another world than the one before left, or saw leases or runs end. ``standing``: runs whose
    Leases cannot be read, which stand as before. ``holds``: what promises keep from all that is not promised.
    ``swaps``: of what is held, what this cycle opens in place of spares.
    """

    at: int
    policy: PolicySpec
    fleet: Fleet
    book: CapBook
    runs: dict[RunKey, RunRow]
    leases: list[LeaseRow]
    held: dict[RunKey, list[LeaseRow]]
    endings: dict[RunKey, Ending]
    closures: list[Closure]
    spent: Spent
    taken: Spent
    funded: Funded
    foreign: dict[str, Foreign]
    node_site: dict[str, int]
    pending: list[RunRow]
    standing: frozenset[RunKey]
    unread: Unread
    turns: dict[LeaseKey, list[Turn]]
    changed: int
    protection: Protection
    effort: Effort = USUAL
    holds: Holds = NOTHING
    swaps: frozenset[LeaseKey] = frozenset()
    doubt: str = ""
    lost: str = ""
    arrays: list[ArrayRow] = field(default_factory=list)
    blocked: dict[RunKey, tuple[str, str]] = field(default_factory=dict)
    deadlines: dict[RunKey, int] = field(default_factory=dict)
    rooms: list[Room] = field(default_factory=list, repr=False)
    asked: Asked = field(default_factory=Asked, repr=False)

    @cached_property
    def open_leases(self) -> list[LeaseRow]:
        """Leases that stay open, run by run."""
        return [lease for held in self.held.values() for lease in held]

    @property
    def swapped(self) -> Iterator[LeaseRow]:
        """Those of them that this cycle opens in place of spares."""
        return (lease for lease in self.open_leases if lease.key in self.swaps)

    @cached_property
    def lent(self) -> Mapping[tuple[str, int], frozenset[LeaseKey]]:
        """Leases by slot that a standby and a tenant hold."""
        found: dict[tuple[str, int], set[LeaseKey]] = {}
        for lease in self.open_leases:
            for slot in lease.ordinals:
                found.setdefault((lease.node, slot), set()).add(lease.key)
        return {slot: frozenset(keys) for slot, keys in found.items() if len(keys) > 1}

    @cached_property
    def _on(self) -> Mapping[str, list[LeaseRow]]:
        found: dict[str, list[LeaseRow]] = {}
        for lease in self.open_leases:
            found.setdefault(lease.node, []).append(lease)
        return found

    @cached_property
    def limits(self) -> Mapping[RunKey, int | None]:
        """Ends of the runs that hold leases by their time limits, Unix seconds."""
        return limit_ends(self.runs, self.held)

    @property
    def few(self) -> bool:
        """Do so few wait that each is weighed with all others to the end?"""
        return self.effort.few(len(self.pending))

    def sites_for(self, run: RunRow) -> frozenset[int]:
        """Sites on which a run could lie, were it to start now; none for a CPU run."""
        return frozenset() if run.is_cpu else self.fleet.sites_for(run.access(self.policy.maintenance, self.at))

    def leases_on(self, node: str) -> list[LeaseRow]:
        """Open leases of a node."""
        return self._on.get(node, [])

    def left_on(self, node: str, lasting: Iterable[LeaseRow]) -> int:
        """GPUs of a node that are nobody's beside these leases of it; below 0 where it has too few for them."""
        other = self.foreign.get(node)
        nobody = 0 if other is None else other.gpus + len(other.slots)
        size = int(self.fleet.gpus[self.fleet.index[node]])
        return max(0, size - nobody) - len({slot for lease in lasting for slot in lease.ordinals})

    @property
    def money(self) -> Money:
        """Budgets at the cycle's time."""
        return self.book.money

    @property
    def ends(self) -> dict[LeaseKey, int]:
        """(namespace, lease) → end of the leases that this cycle closes."""
        return ends_of(self.closures)

    def asking(self, pending: list[RunRow], runs: dict[RunKey, RunRow] | None = None) -> "State":
        """The state in which only ``pending`` wait, and all that is held is the same; ``runs``: with these runs."""
        asked = Asked(self.asked.lists)
        return replace(self, pending=pending, runs=runs or self.runs, blocked=dict(self.blocked), asked=asked)

    def letting(self, unfunded: Iterable[RunKey]) -> "State":
        """The state in which these runs may start where nobody pays for them."""
        promised = self.holds.promised._replace(unfunded=frozenset(unfunded))
        return replace(self, holds=self.holds._replace(promised=promised))

    def room(self) -> Room:
        """Room before anything is started, to be filled."""
        if not self.rooms:
            room = Room(self.fleet)
            room.occupy(self.open_leases, self.runs, self.foreign)
            room.hold_back(self.holds.part)
            self.rooms.append(room)
        return self.rooms[0].copy()

    def emptied_room(self) -> Room:
        """Room were no run there: every GPU but those that others than runs hold."""
        room = Room(self.fleet)
        room.occupy((), self.runs, self.foreign)
        return room

    def problem(self, *, many: bool = False, emptied: bool = False) -> Problem:
        """Problem of the runs that wait and may start; with ``many`` as where many wait, however few do here.

        ``emptied``: any GPU may come free, so no payer is left out for want of one.
        """
        return self.lowered(self.waiting(many=many), emptied=emptied)

    def waiting(self, *, many: bool = False) -> Waiting:
        """Runs that wait and may start, before they are lowered."""
        there = self._started()
        ready = [run for run in self.pending if run.key not in self.blocked and run.key not in there]
        whole, waiting = gangs.gangs(ready, there.values(), partial(self._away, ready, there))
        for key, why in waiting.items():
            self.blocked[key] = (unweighed.GANG, why)
        ready = [run for run in ready if run.key not in self.blocked and not run.is_cpu]
        exact = self.effort.few(len(ready)) and not many
        ties = trees.Ties(whole, self.quotas(), self.holds.promised)
        left = funds.beside(self.holds.money, self.book, self.funded, self.taken)
        return Waiting.of(ready, self.fleet, self.book, left, ties, changed=self.changed, exact=exact, asked=self.asked)

    def lowered(self, waiting: Waiting, *, rises: bool = False, emptied: bool = False) -> Problem:
        """Lower what waits; with ``rises`` also what only a rise of some bound would let start, with ``emptied`` what
        would have room once others have gone.
        """
        at_work = np.unique(self.fleet.site[self.fleet.takes_work]).tolist() if rises else []
        free = self.size_by_site() if emptied else self.room().free_by_site()
        return waiting.lowered(dict.fromkeys(at_work, 0) | free, rises=rises)

    def size_by_site(self) -> dict[int, int]:
        """GPUs at work, whoever has them."""
        gpus = np.bincount(self.fleet.site, np.where(self.fleet.takes_work, self.fleet.gpus, 0))
        return {site: int(size) for site, size in enumerate(gpus) if size}

    def _started(self) -> dict[RunKey, RunRow]:
        """Members of gangs that run on or have completed, be it now."""
        done = {key for key, ending in self.endings.items() if ending.outcome == "Completed"}
        members = {key: run for key, run in self.runs.items() if run.gang and key not in self.endings.keys() - done}
        there = self.held.keys() | self.standing | done
        return {
            key: run
            for key, run in members.items()
            if key in there or run.outcome == "Completed" or (run.is_cpu and run.started is not None)
        }

    def _away(self, ready: Iterable[RunRow], there: Container[RunKey]) -> dict[gangs.GangKey, dict[str, gangs.Away]]:
        """Members of gangs that are neither ``ready`` nor ``there``, by gang and name."""
        counted = {run.key for run in ready}
        found: dict[gangs.GangKey, dict[str, gangs.Away]] = {}
        for key, run in self.runs.items():
            if run.gang and key not in counted and key not in there:
                why = gangs.away(run, self.endings.get(key), self.blocked.get(key, ("",))[0])
                found.setdefault((run.namespace, run.gang), {})[run.name] = why
        return found

    def quotas(self) -> list[trees.Tree]:
        """Trees that have one."""
        return trees.trees(self.runs, self.leases, self.ends, self.at, int(self.policy.accounting_period))
