"""A trial of cuts: what starts where room is made, one start after another, on the planner's own room and money."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from jobtree.api.values.counted import counted
from planner.cutting.domains import Need
from planner.cutting.least import Option, Weighing
from planner.cutting.places import Place, Slots
from planner.cutting.victims import Victim
from planner.filling.filler import Filler, Settled, demand
from planner.filling.purses import Demand, Paid, Purses, payers_of
from planner.filling.together import Together
from planner.placement.draft import Draft
from planner.placement.place import Piece, Start, pieces_of
from planner.state.state import State
from policies.cuts.order import REASONS, Cut, Cuts, Harm
from policies.inputs.claims import LeaseKey, LeaseRow, RunKey
from policies.inputs.shapes import PodLoad, Shape
from policies.lifecycle.endings import Ending
from policies.model.gangs import Gang
from policies.model.problem import Problem

Members = tuple[int, ...]
"""Candidates that start together, or not at all; the first is of the run that they start for."""


@dataclass
class Trial:
    """``slots``: what is free, and which leases are cut; ``gone``: runs that fall below their least width, with the
    reason; ``started``: candidates whose room and money is taken; ``places``: of starts that are to be there, in their
    order; ``promised``: nodes on which runs have been told that they start. ``_begun``: runs of these starts.

    What starts are *members*: candidates that start together or not at all, of a run alone just its own.
    """

    state: State
    problem: Problem
    filler: Filler
    slots: Slots
    promised: Mapping[RunKey, frozenset[int]] = field(default_factory=dict)
    gone: dict[RunKey, Cut] = field(default_factory=dict)
    started: set[int] = field(default_factory=set)
    places: dict[RunKey, Place] = field(default_factory=dict)
    _begun: set[RunKey] = field(default_factory=set)

    @classmethod
    def of(cls, state: State, promised: Mapping[RunKey, Iterable[str]] | None = None) -> "Trial":
        """Begin on a state in which nothing has been started yet; ``promised``: nodes of promises, by run."""
        asked = state.asking(state.pending)
        problem = asked.problem(emptied=True)
        filler = Filler(problem, state.room(), Purses.after(problem, Draft()))
        index = state.fleet.index
        told = {key: frozenset(index[n] for n in nodes if n in index) for key, nodes in (promised or {}).items()}
        return cls(state, problem, filler, Slots(state, filler), told)

    @cached_property
    def _gangs(self) -> dict[RunKey, Gang]:
        return {key: gang for gang in self.problem.gangs if gang.ties for key in gang.members}

    def _gang(self, members: Members) -> Gang | None:
        """Gang that ties them, unless something of it has been started."""
        gang = self._gangs.get(self.key(members))
        return None if gang is None or not self._begun.isdisjoint(gang.members) else gang

    def members(self, key: RunKey, promised: Collection[RunKey] = ()) -> Members | None:
        """Candidates that start for a run: it, and of its gang as many as it takes, those that are ``promised`` first,
        then in their order. None where too few have a payer.
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
        """Owners of these runs: nobody of these is drawn for them."""
        return frozenset(self.problem.candidates[each].run.owner for each in members)

    @property
    def cut(self) -> Mapping[LeaseKey, Cut]:
        """Leases that go, by key."""
        return self.slots.cut

    @property
    def gpus_cut(self) -> int:
        """GPUs that are cut so far."""
        return sum(lease.gpus for lease in self.slots.leases_of(self.cut))

    def most_cut(self, weighing: Weighing, harm: Harm) -> int:
        """Most GPUs that a set of that harm closes beside what is cut so far, whoever is drawn.

        Spares go with their group, and are no part of the harm.
        """
        groups, leases = dict[tuple[int, int], int](), dict[LeaseKey, int]()
        for number, victim in enumerate(weighing.victims):
            for lease in self.state.held[victim.run]:
                if lease.key not in self.cut:
                    leases[lease.key] = lease.gpus
                    groups[number, lease.group] = groups.get((number, lease.group), 0) + lease.gpus
        return weighing.most(harm, groups, leases)

    def funded(self, key: RunKey) -> int | None:
        """The candidate by which a run would be funded; None where it has no payer."""
        ways = self.problem.ways.get(key, ())
        return next((c for c in ways if not self.problem.type_of(c).unfunded), None)

    def may_be_unfunded(self, key: RunKey) -> bool:
        """May a run that starts alone start where nobody pays, as it is due?"""
        return key in self.state.holds.promised.unfunded and key not in self._gangs

    def start_unfunded(self, key: RunKey, members: Members | None, *, elsewhere: bool = True) -> list[Settled]:
        """Start a run that is due where nobody pays for it (``members``, if any), and it may, where it is promised or
        else ``elsewhere``, and keep its room taken; an empty list where it cannot.
        """
        if not self.may_be_unfunded(key) or self.has_begun(key) or (members and self.is_funded(members)):
            return []
        unpaid = tuple(c for c in self.problem.ways[key] if self.problem.type_of(c).unfunded)
        found = self.as_promised(unpaid) or (self._tried(self.filler, unpaid) if elsewhere else [])
        self.begin(found)
        return found

    def start(self, members: Members, *, is_paid: bool = True) -> list[Settled]:
        """Start them at their least width, where they are promised if that can be, and keep room and money taken; an
        empty list where they cannot. Where nobody ``is_paid`` yet, room alone.
        """
        filler = self.filler if is_paid else Filler(self.problem, self.filler.room, self.filler.purses, is_paid=False)
        found = self.as_promised(members, filler) or self._tried(filler, members)
        if not is_paid:
            self._filled(found)
        self.begin(found)
        return found

    def _filled(self, found: Iterable[Settled]) -> None:
        """Note slots that another filler has taken of this room."""
        for domain in {piece.domain for each in found for piece in each.pieces}:
            self.filler.vacancies.changed(domain)

    def begin(self, found: Iterable[Settled]) -> None:
        """Count starts as made whose room and money is taken."""
        for each in found:
            self.started.add(each.start.candidate)
            self._begun.add(self.key([each.start.candidate]))

    def take_back(self, found: Sequence[Settled]) -> None:
        """Undo these starts."""
        self.filler.take_back(found)
        self.filler.forget()
        self.unbegin(found)

    def unbegin(self, found: Sequence[Settled]) -> None:
        """Undo `begin`."""
        begun = self.started.intersection(each.start.candidate for each in found)
        self.started -= begun
        self._begun.difference_update(self.key([each]) for each in begun)

    def put_back(self, found: Iterable[Settled]) -> None:
        """Undo `take_back`."""
        for each in found:
            self.filler.put_back(each)
            self.begin([each])

    def as_promised(self, members: Members, filler: Filler | None = None) -> list[Settled]:
        """Each on the nodes that it is promised; an empty list where one is promised none, or has no room there."""
        filler, found = filler or self.filler, list[Settled]()
        for candidate in members:
            nodes = self.promised.get(self.key([candidate]))
            one = filler.start_on(Start(candidate, 0), nodes) if nodes else None
            if one is None:
                filler.take_back(found)
                filler.forget()
                return []
            found.append(one)
        return found

    def _tried(self, filler: Filler, members: Members) -> list[Settled]:
        gang = self._gang(members)
        if gang is not None:
            return Together(self.problem, filler, members, ()).try_start(gang, least=True)
        (candidate,) = members
        found = filler.try_start(self.problem.type_of(candidate), Start(candidate, 0))
        return [] if found is None else [found]

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
        """Needs of them at their least width, each on those sites where one region's money pays for all of it.

        Where none does, on all of its sites.
        """
        counts: dict[tuple[Shape, frozenset[int], PodLoad], int] = {}
        for candidate in members:
            kind, sites = self.problem.type_of(candidate), self._sites(candidate)
            for shape, count in kind.pieces:
                counts[shape, sites, kind.load] = counts.get((shape, sites, kind.load), 0) + count
        return [Need(shape, count, sites, load) for (shape, sites, load), count in counts.items()]

    def pieces(self, candidate: int) -> list[Piece]:
        """The same of one, piece by piece."""
        found, sites = pieces_of(self.problem, Start(candidate, 0)), self._sites(candidate)
        for piece in found:
            piece.sites = sites
        return found

    def _sites(self, candidate: int) -> frozenset[int]:
        region, sites = self.problem.book.money.region, self.problem.type_of(candidate).sites
        rich = {each for each in sorted({region[site] for site in sites}) if self._pays(candidate, each)}
        return frozenset(site for site in sites if region[site] in rich) if rich else sites

    def _pays(self, candidate: int, region: int) -> bool:
        kind, purses, start = self.problem.type_of(candidate), self.filler.purses, Start(candidate, 0)
        if not purses.trees_allow(start):
            return False
        needed = {(True, region): kind.base_gpus} | ({(False, region): s} if (s := kind.lowered.spare_gpus) else {})
        return self._paid(start, needed) is not None

    def _paid(self, start: Start, needed: Demand) -> Paid | None:
        """Payers of it; nothing is taken."""
        paid = self.filler.purses.pay_for(start, needed)
        if paid is not None:
            self.filler.purses.take_back([(start, paid)])
        return paid

    def weighing(self, needs: Sequence[Need], victims: Iterable[Victim]) -> Weighing:
        """Weigh what would have to go for these needs, of runs of which nothing is cut yet: none is drawn for two."""
        touched = {lease.run_key for lease in self.slots.leases_of(self.cut)}
        left = [victim for victim in victims if victim.run not in touched]
        return Weighing.of(left, needs, self.filler.room, self.state.effort.cutting)

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
        self.slots.free(found)
        self.gone |= lost
        return found

    def undo(self, found: Mapping[LeaseKey, Cut]) -> None:
        """Undo the cuts of these."""
        self.slots.undo(found)
        runs = {lease.run_key for lease in self.slots.leases_of(found)}
        self.gone = {key: cut for key, cut in self.gone.items() if key not in runs}

    def redo(self, found: Mapping[LeaseKey, Cut], gone: Mapping[RunKey, Cut]) -> None:
        """Undo `undo`; ``gone``: runs that fell below their least width before it."""
        self.slots.free(found)
        self.gone = {**gone}

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

    def spend(self, starts: Mapping[RunKey, Settled]) -> list[Settled]:
        """Count the money of starts that stand, as if they had been started: nobody else is promised it."""
        stood = []
        for key, found in starts.items():
            candidate = self.funded(key)
            if candidate is not None:
                needed = demand(self.problem, self.filler.room, found.pieces)
                self.filler.purses.pay_for(start := Start(candidate, found.start.steps), needed)
                stood.append(found._replace(start=start))
        self.begin(stood)
        return stood


def _goes_alone(lease: LeaseRow, option: Option, victim: Victim) -> bool:
    if option.what == "spare":
        return lease.key in victim.spares[option.part].keys
    return lease.group == option.part
