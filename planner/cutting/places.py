"""Places: where a start that cuts make lies, and which slots are free as leases are cut, end, or are kept."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from planner.filling.filler import Filler
from planner.placement.room import Chunk
from planner.state.state import State
from policies.cuts.order import LOTTERY, REASONS, Cut
from policies.inputs.claims import LeaseKey, LeaseRow, RunKey
from policies.inputs.shapes import PodLoad
from policies.promises.rules import Promise


class Place(NamedTuple):
    """Nodes of a start, by name, and its payers: (budget, envelope), nearest first."""

    nodes: tuple[str, ...]
    payers: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, state: State, nodes: Iterable[int], payers: Iterable[int]) -> "Place":
        """Name nodes and envelopes by their numbers in a state."""
        names, envelopes = state.fleet.names, state.money.envelopes
        paying = (envelopes[payer] for payer in payers)
        return cls(tuple(names[node] for node in nodes), tuple((each.budget, each.name) for each in paying))


class Lost(NamedTuple):
    """Slots of a node that are left to somebody: GPUs that were ``free``, and others that are still held."""

    node: int
    free: int
    held: int


@dataclass
class Slots:
    """``cut``: leases that go, by key; ``over``: leases that end by themselves before a time to come, whose slots
    (``_ended``) count as free. ``_short``: by node, GPUs that starts take of what runs on until they begin.
    """

    state: State
    filler: Filler
    cut: dict[LeaseKey, Cut] = field(default_factory=dict)
    over: frozenset[LeaseKey] = frozenset()
    _ended: list[tuple[Chunk, PodLoad]] = field(default_factory=list)
    _short: dict[int, int] = field(default_factory=dict)

    def free(self, found: Mapping[LeaseKey, Cut]) -> None:
        """Cut these leases: their slots are free."""
        self._free(found)
        self.cut |= found

    def undo(self, found: Collection[LeaseKey]) -> None:
        """Undo the cuts of these."""
        self._free(found, sign=-1)
        for key in found:
            del self.cut[key]

    def let_end(self, leases: frozenset[LeaseKey]) -> None:
        """Count as free what these leases hold; what begins at a later time on others waits for their end."""
        room = self.filler.room
        room.lost = [*room.lost]  # copies of a room share it
        self._miss(-1)
        for chunk, load in self._ended:
            self._give_back([replace(chunk, count=-chunk.count, pods=-chunk.pods)], load)
        self.over, self._ended = leases, [*self._chunks(leases)]
        for chunk, load in self._ended:
            self._give_back([chunk], load)
        self._short = {node: -gpus for node, gpus in enumerate(room.free) if gpus < 0}
        self._miss(1)
        self.filler.forget()

    def _miss(self, sign: int) -> None:
        for node, gpus in self._short.items():
            self.filler.room.free[node] += sign * gpus
            self.filler.room.lost[node] += sign * gpus

    def await_pods(self) -> None:
        """Count as free what runs' pods that are being deleted still hold: nobody is cut for want of that."""
        fleet = self.state.fleet
        for name, other in sorted(self.state.foreign.items()):
            node = fleet.index.get(name)
            if node is not None and fleet.takes_work[node]:
                for gpus, load in other.ending:
                    self._give_back([Chunk(0, node, gpus, 1, active=True)], load)
        self.filler.forget()

    def leave(
        self, chunks: Collection[Chunk], leases: Iterable[LeaseRow], over: Collection[RunKey]
    ) -> tuple[dict[LeaseKey, Cut], list[Lost]]:
        """Keep slots for good to a start that stands, and cut of these leases what it lacks there; returns
        these cuts, and the slots.

        What runs that are ``over`` by then have there is free without that.
        """
        lacking: dict[int, int] = {}
        for chunk in chunks:
            lacking[chunk.node] = lacking.get(chunk.node, -max(0, self.filler.room.free[chunk.node])) + chunk.count
        for lease in (lease for key in sorted(over) for lease in self.state.held[key] if lease.key not in self.cut):
            node = self.state.fleet.index.get(lease.node, -1)
            lacking[node] = lacking.get(node, 0) - lease.gpus
        gone: list[LeaseRow] = []
        for lease in leases:
            node = self.state.fleet.index.get(lease.node, -1)
            if lease.key not in self.cut and lease.run_key not in over and lacking.get(node, 0) > 0:
                lacking[node] -= lease.gpus
                gone.append(lease)
        found = {lease.key: Cut(REASONS[LOTTERY], "") for lease in gone}
        self.free(found)
        return found, self.keep(chunks)

    def promised(self, promises: Iterable[Promise]) -> Iterator[Chunk]:
        """Slots of promises: of each of their nodes as many as their run could have there, spares included.

        How many they are to have on which is not told.
        """
        fleet = self.state.fleet
        for each in promises:
            most = self.state.runs[each.run_key].slots_min
            for node in (fleet.index[name] for name in each.nodes if name in fleet.index):
                yield Chunk(0, node, min(most, int(fleet.gpus[node])), 1, active=True)

    def keep(self, chunks: Iterable[Chunk]) -> list[Lost]:
        """Leave slots to who has them sooner or later without cuts: those that are free, and those that will be."""
        room = self.filler.room
        room.lost = [*room.lost]  # copies of a room share it
        kept = []
        for chunk in chunks:
            free = max(0, min(room.free[chunk.node], chunk.count))
            kept.append(Lost(chunk.node, free, chunk.count - free))
            self._lose(kept[-1], 1)
        return kept

    def let_go(self, kept: Iterable[Lost]) -> None:
        """Undo `keep`."""
        for each in kept:
            self._lose(each, -1)
        self.filler.forget()

    def keep_again(self, kept: Iterable[Lost]) -> None:
        """Undo `let_go`."""
        for each in kept:
            self._lose(each, 1)

    def _lose(self, each: Lost, sign: int) -> None:
        room = self.filler.room
        room.free[each.node] -= sign * each.free
        room.lost[each.node] += sign * each.held
        self.filler.vacancies.changed(int(self.state.fleet.domain[each.node]))

    def leases_of(self, keys: Iterable[LeaseKey]) -> list[LeaseRow]:
        """The open leases of these keys."""
        return [self._open[key] for key in sorted({*keys} & self._open.keys())]

    def nodes_of(self, keys: Iterable[LeaseKey]) -> set[int]:
        """The nodes that these leases lie on, of those that there are."""
        index = self.state.fleet.index
        return {index[lease.node] for lease in self.leases_of(keys) if lease.node in index}

    def has_room(self, nodes: Iterable[int]) -> bool:
        """Do nodes have all that is taken there?"""
        room = self.filler.room
        return all(min(room.free[each], room.cpu[each], room.memory[each], room.pods[each]) >= 0 for each in nodes)

    @cached_property
    def _open(self) -> dict[LeaseKey, LeaseRow]:
        return {lease.key: lease for lease in self.state.open_leases}

    def _free(self, found: Collection[LeaseKey], *, sign: int = 1) -> None:
        for chunk, load in self._chunks(found):
            self._give_back([replace(chunk, count=sign * chunk.count, pods=sign * chunk.pods)], load)
        self.filler.forget()

    def _chunks(self, found: Collection[LeaseKey]) -> Iterator[tuple[Chunk, PodLoad]]:
        """Slots that are free once these leases go, and their pods' needs."""
        fleet = self.state.fleet
        for lease in self.leases_of(found):
            node, run = fleet.index.get(lease.node), self.state.runs[lease.run_key]
            if node is not None and fleet.takes_work[node]:
                pods = run.pods_of(lease.gpus) if lease.active else 0
                gpus = sum(self._is_freed(lease, slot, found) for slot in lease.ordinals)
                yield Chunk(lease.group, node, gpus, pods, lease.active), run.load

    def _is_freed(self, lease: LeaseRow, slot: int, found: Collection[LeaseKey]) -> bool:
        """Is a slot free once ``found`` go? A standby and a tenant share it; it counts with one of the two."""
        holders = self.state.lent.get((lease.node, slot), frozenset())
        left = [key for key in holders if key not in self.cut or key in found]
        return all(key in found for key in left) and lease.key == min(left, default=lease.key)

    def _give_back(self, chunks: list[Chunk], load: PodLoad) -> None:
        self.filler.room.give_back(chunks, load)
        for chunk in chunks:
            self.filler.vacancies.changed(int(self.state.fleet.domain[chunk.node]))
