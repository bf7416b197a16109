"""A trial of cuts: what starts where room is made, one start after another, on the planner's own room and money."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from jobtree.api.values.counted import counted
from planner.cutting.least import Need, Option, Weighing
from planner.cutting.places import Lost, Place
from planner.cutting.victims import Victim
from planner.filling.filler import Filler, Settled, demand
from planner.filling.purses import Demand, Paid, Purses, payers_of
from planner.filling.together import Together
from planner.placement.draft import Draft
from planner.placement.place import Piece, Start
from planner.placement.room import Chunk
from planner.state.state import State
from policies.cuts.order import LOTTERY, REASONS, Cut, Cuts
from policies.inputs.claims import LeaseKey, LeaseRow, RunKey
from policies.inputs.shapes import PodLoad, Shape
from policies.lifecycle.endings import Ending
from policies.model.gangs import Gang
from policies.model.problem import Problem, RunType

Members = tuple[int, ...]
"""Candidates that start together, or not at all; the first is of the run that they start for."""


@dataclass
class Trial:
    """``cut``: leases that go, by key; ``gone``: runs that fall below their least width, with the reason; ``started``:
    candidates whose room and money is taken; ``places``: of starts that are to be there, in their order;
    ``over``: leases that end by themselves before a time to come, whose slots (``_ended``) count as free.
    ``_begun``: runs of these starts; ``_short``: by node, GPUs that starts take of what runs on until they begin.

    What starts are *members*: candidates that start together or not at all, of a run alone just its own.
    """

    state: State
    problem: Problem
    filler: Filler
    cut: dict[LeaseKey, Cut] = field(default_factory=dict)
    gone: dict[RunKey, Cut] = field(default_factory=dict)
    started: set[int] = field(default_factory=set)
    places: dict[RunKey, Place] = field(default_factory=dict)
    over: frozenset[LeaseKey] = frozenset()
    _ended: list[tuple[Chunk, PodLoad]] = field(default_factory=list)
    _short: dict[int, int] = field(default_factory=dict)
    _begun: set[RunKey] = field(default_factory=set)

    @classmethod
    def of(cls, state: State) -> "Trial":
        """Of a state in which nothing has been started yet."""
        asked = state.asking(state.pending)
        problem = asked.problem(emptied=True)
        return cls(state, problem, Filler(problem, state.room(), Purses.after(problem, Draft())))

    @cached_property
    def _gangs(self) -> dict[RunKey, Gang]:
        return {key: gang for gang in self.problem.gangs if gang.ties for key in gang.members}

    def _gang(self, members: Members) -> Gang | None:
        """What ties them, unless something of it has been started."""
        gang = self._gangs.get(self.key(members))
        return None if gang is None or not self._begun.isdisjoint(gang.members) else gang

    def members(self, key: RunKey, promised: Collection[RunKey] = ()) -> Members | None:
        """What starts for a run: it, and of its gang as many as it takes, those that are ``promised`` first, then in
        their order. None where too few have a payer.
        """
        own = self.funded(key)
        if own is None:
            return None
        gang = self._gang((own,))
        if gang is None:
            return (own,)
        there = [each for other in gang if (each := self.funded(other)) is not None]
        if len(there) < gang.least:
            return None
        turns = {each: (self.key([each]) not in promised, self.problem.candidates[each].order) for each in there}
        others = sorted((each for each in there if each != own), key=turns.__getitem__)
        return (own, *others[: gang.least - 1])

    def key(self, members: Sequence[int]) -> RunKey:
        """The run that they start for."""
        return self.problem.candidates[members[0]].run.key

    def owners(self, members: Members) -> frozenset[str]:
        """Whose runs they are: nobody of these is drawn for them."""
        return frozenset(self.problem.candidates[each].run.owner for each in members)

    @property
    def gpus_cut(self) -> int:
        """GPUs that are cut so far."""
        return sum(lease.gpus for lease in self.leases_of(self.cut))

    def funded(self, key: RunKey) -> int | None:
        """The candidate by which a run would be funded; None where it has no payer."""
        ways = self.problem.ways.get(key, ())
        return next((c for c in ways if not self.type_of(c).unfunded), None)

    def type_of(self, candidate: int) -> RunType:
        """A candidate's type."""
        return self.problem.types[self.problem.candidates[candidate].type]

    def start(self, members: Members, *, is_paid: bool = True) -> list[Settled]:
        """Start them at their least width and keep room and money taken; an empty list where they cannot.

        Where nobody ``is_paid`` yet, room alone.
        """
        filler = self.filler if is_paid else Filler(self.problem, self.filler.room, self.filler.purses, is_paid=False)
        found = self._tried(filler, members)
        for domain in () if is_paid else {piece.domain for each in found for piece in each.pieces}:
            self.filler.vacancies.changed(domain)
        self.started |= {each.start.candidate for each in found}
        self._begun |= {self.key([each.start.candidate]) for each in found}
        return found

    def take_back(self, found: Settled) -> None:
        """As if this had not started."""
        self.filler.take_back([found])
        self.filler.forget()
        self.started.discard(found.start.candidate)
        self._begun.discard(self.key([found.start.candidate]))

    def _tried(self, filler: Filler, members: Members) -> list[Settled]:
        gang = self._gang(members)
        if gang is not None:
            return Together(self.problem, filler, members, ()).try_start(gang, least=True)
        (candidate,) = members
        found = filler.try_start(self.type_of(candidate), Start(candidate, 0))
        return [] if found is None else [found]

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

    def has_begun(self, key: RunKey) -> bool:
        """Is the run's start among those that are made?"""
        return key in self._begun

    def widen(self, found: Iterable[Settled]) -> list[Settled]:
        """Let starts grow as far as there is room and money beside all others."""
        return self.filler.widen(found)

    def pin(self, found: Iterable[Settled]) -> None:
        """Keep starts where they were found."""
        for each in found:
            place = Place.of(self.state, each.nodes, payers_of(each.paid))
            self.places[self.key([each.start.candidate])] = place

    def together(self, key: RunKey) -> tuple[RunKey, ...]:
        """A run, or those of its gang whose starts are to be there."""
        gang = self._gangs.get(key)
        return (key,) if gang is None else tuple(each for each in gang if each in self.places)

    def unpin(self, key: RunKey) -> None:
        """Let a run, and its gang with it, start anywhere."""
        gang = self._gangs.get(key)
        for each in (key,) if gang is None else gang:
            self.places.pop(each, None)

    def is_funded(self, members: Members) -> bool:
        """Would they be paid for, were every GPU free but those of others than runs?"""
        filler = Filler(self.problem, self.state.emptied_room(), self.filler.purses)
        found = self._tried(filler, members)
        filler.take_back(found)
        return bool(found)

    def payers(self, key: RunKey, pieces: Iterable[Piece]) -> list[int]:
        """Envelopes that would pay for a run on these slots, nearest first; none where nobody would."""
        candidate = self.funded(key)
        needed = demand(self.problem, self.filler.room, pieces)
        paid = None if candidate is None else self._paid(Start(candidate, 0), needed)
        return payers_of(paid or {})

    def needs(self, members: Members) -> list[Need]:
        """What they ask for at their least width, each on those sites where one region's money pays for all of it.

        Where none does, on all of its sites.
        """
        counts: dict[tuple[Shape, frozenset[int], PodLoad], int] = {}
        region = self.problem.book.money.region
        for candidate in members:
            kind = self.type_of(candidate)
            rich = {each for each in sorted({region[s] for s in kind.sites}) if self._pays(candidate, each)}
            sites = frozenset(site for site in kind.sites if region[site] in rich) if rich else kind.sites
            for shape, count in kind.pieces:
                counts[shape, sites, kind.load] = counts.get((shape, sites, kind.load), 0) + count
        return [Need(shape, count, sites, load) for (shape, sites, load), count in counts.items()]

    def _pays(self, candidate: int, region: int) -> bool:
        kind, purses, start = self.type_of(candidate), self.filler.purses, Start(candidate, 0)
        if not purses.trees_allow(start):
            return False
        needed = {(True, region): kind.base_gpus} | ({(False, region): s} if (s := kind.lowered.spare_gpus) else {})
        return self._paid(start, needed) is not None

    def _paid(self, start: Start, needed: Demand) -> Paid | None:
        """Who would pay for it; nothing is taken."""
        paid = self.filler.purses.pay_for(start, needed)
        if paid is not None:
            self.filler.purses.take_back([(start, paid)])
        return paid

    def weighing(self, members: Members, victims: Iterable[Victim]) -> Weighing:
        """What would have to go for them, of runs of which nothing is cut yet: no victim is drawn or told for two."""
        touched = {lease.run_key for lease in self.leases_of(self.cut)}
        left = [victim for victim in victims if victim.run not in touched]
        return Weighing.of(left, self.needs(members), self.filler.room)

    def take(
        self, weighing: Weighing, chosen: Iterable[Option], reservation: str, drawn: Mapping[RunKey, int]
    ) -> dict[LeaseKey, Cut]:
        """Cut what was chosen, and count its slots as free. ``drawn``: which pick took each run that was drawn."""
        found: dict[LeaseKey, Cut] = {}
        lost: dict[RunKey, Cut] = {}
        for option in sorted(chosen):
            victim = weighing.victims[option.victim]
            cut = Cut(REASONS[weighing.kinds[option]], reservation, drawn.get(victim.run))
            for lease in self.state.held[victim.run]:
                if lease.key in self.cut:
                    continue  # by what was cut before
                if option.what == "lost":
                    found.setdefault(lease.key, cut)
                    lost[victim.run] = cut
                elif _goes_alone(lease, option, victim):
                    found[lease.key] = Cut(cut.reason, reservation)
        self._free(found)
        self.cut |= found
        self.gone |= lost
        return found

    def undo(self, found: Mapping[LeaseKey, Cut]) -> None:
        """As if these had not been cut."""
        self._free(found, sign=-1)
        for key in found:
            del self.cut[key]
        runs = {lease.run_key for lease in self.leases_of(found)}
        self.gone = {key: cut for key, cut in self.gone.items() if key not in runs}

    def spare(self, found: Sequence[Settled], cut: Mapping[LeaseKey, Cut]) -> list[Settled] | None:
        """Make starts without what was cut for them, beside all others as they lie; None, and all as it was, where that
        cannot be.
        """
        members, gone = tuple(each.start.candidate for each in found), self.gone
        for each in reversed(found):
            self.take_back(each)
        self.undo(cut)
        room, nodes = self.filler.room, {chunk.node for chunk, _ in self._chunks(cut)}
        left = (room.free, room.cpu, room.memory, room.pods)
        is_clear = all(kind[node] >= 0 for kind in left for node in nodes)  # nobody else lies where they stay
        if is_clear and (again := self.start(members)):
            return again
        self._free(cut)
        self.cut |= cut
        self.gone = gone
        for each in found:
            self.filler.put_back(each)
            self.started.add(each.start.candidate)
            self._begun.add(self.key([each.start.candidate]))
        return None

    def cuts(self) -> Cuts:
        """All of them, and what becomes of the runs that fall below their least width."""
        pins = {key: place.nodes for key, place in self.places.items()}
        return Cuts(self.cut, {key: self._ending(key, cut) for key, cut in sorted(self.gone.items())}, pins)

    def _ending(self, key: RunKey, cut: Cut) -> Ending:
        run = self.state.runs[key]
        gpus = counted(sum(lease.gpus for lease in self.state.held[key] if lease.active), "GPU")
        what = f"promise {cut.reservation}" if cut.reservation else "funded work"
        how = "were drawn by the lottery for" if cut.draw is not None else "gave way to"
        words = f"Its {gpus} {how} {what}."
        return Ending("" if run.requeue else "Failed", cut.reason, self.state.at, words)

    def leave(self, chunks: Collection[Chunk], leases: Iterable[LeaseRow], over: Collection[RunKey]) -> list[LeaseRow]:
        """Keep slots for good to a start that stands, and cut of these leases what it lacks there, which is returned.

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
        self._free(found)
        self.cut |= found
        self.keep(chunks)
        return gone

    def spend(self, starts: Mapping[RunKey, Settled]) -> None:
        """Count the money of starts that stand, as if they had been started: nobody else is promised it."""
        for key, found in starts.items():
            candidate = self.funded(key)
            if candidate is not None:
                needed = demand(self.problem, self.filler.room, found.pieces)
                self.filler.purses.pay_for(Start(candidate, found.start.steps), needed)
                self.started.add(candidate)
                self._begun.add(key)

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

    def _lose(self, each: Lost, sign: int) -> None:
        room = self.filler.room
        room.free[each.node] -= sign * each.free
        room.lost[each.node] += sign * each.held
        self.filler.vacancies.changed(int(self.state.fleet.domain[each.node]))

    def leases_of(self, keys: Iterable[LeaseKey]) -> list[LeaseRow]:
        """The open leases of these keys."""
        return [self._open[key] for key in sorted({*keys} & self._open.keys())]

    @cached_property
    def _open(self) -> dict[LeaseKey, LeaseRow]:
        return {lease.key: lease for mine in self.state.held.values() for lease in mine}

    def _free(self, found: Collection[LeaseKey], *, sign: int = 1) -> None:
        for chunk, load in self._chunks(found):
            self._give_back([replace(chunk, count=sign * chunk.count, pods=sign * chunk.pods)], load)
        self.filler.forget()

    def _chunks(self, found: Collection[LeaseKey]) -> Iterator[tuple[Chunk, PodLoad]]:
        """What is free once these leases go, and their pods' needs."""
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


def _goes_alone(lease: LeaseRow, option: Option, victim: Victim) -> bool:
    if option.what == "spare":
        return lease.key == victim.spares[option.part].key
    return lease.group == option.part
