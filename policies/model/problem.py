"""Problem: what waits, as rules see it: types of runs that only age tells apart (ARCHITECTURE.md, the model)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from policies.caps.cap import CapBook, Lane
from policies.caps.leeway import Leeway
from policies.funding.classes import Funded
from policies.funding.ledger import Spent
from policies.inputs.claims import RunKey
from policies.inputs.fleet import Fleet
from policies.inputs.runs import RunRow
from policies.inputs.shapes import Lowered, PodLoad, Shape
from policies.model.gangs import Gang
from policies.model.payers import Payer, Refused, Source
from policies.model.recall import Recall
from policies.model.trees import Tree


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run that may start: its weight per GPU (stage 3), its type, and its payers, nearest first.

    ``purse``: the same number for the same payers in the same order; ``recalls``: may it recall anything?
    ``turn``: among what is promised to start now, the same for all that is not; ``told``: nodes on which it is.
    """

    run: RunRow
    weight: int
    type: int
    payers: tuple[Payer, ...]
    purse: int
    recalls: bool
    turn: int = 0
    told: frozenset[int] = frozenset()

    @property
    def order(self) -> tuple[int, int, int, RunKey]:
        """Sort key: what is promised to start now, by its turn; then heaviest first, then oldest, then by name."""
        return self.turn, -self.weight, self.run.created, self.run.key


@dataclass
class RunType:
    """Runs that only age tells apart. ``members``: candidates, heaviest (oldest) first, then by name.

    ``sources``: who may pay, in envelope order; how near each is differs by run and matters to stage 7 only. Empty for
    work that starts unfunded by its own choice (``unfunded``): stage 6. ``pool``: the same number for the same sources.
    """

    index: int
    lowered: Lowered
    sites: frozenset[int]
    sources: tuple[Source, ...]
    pool: int
    unfunded: bool
    load: PodLoad
    max_borrow: int | None
    members: list[int] = field(default_factory=list)

    @cached_property
    def base_gpus(self) -> int:
        """Active GPUs at the least width."""
        return sum(self.lowered.base)

    @cached_property
    def step_gpus(self) -> int:
        """Active GPUs of one step."""
        return sum(self.lowered.step)

    def gpus(self, steps: int) -> int:
        """Active GPUs so many steps above the least width."""
        return self.base_gpus + steps * self.step_gpus

    @cached_property
    def pieces(self) -> tuple[tuple[Shape, int], ...]:
        """Shapes of the base, with how many of each a run has."""
        return _counted(self.lowered.pieces())

    @cached_property
    def step_pieces(self) -> tuple[tuple[Shape, int], ...]:
        """Shapes of one step, likewise."""
        return _counted(self.lowered.step_pieces()) if self.lowered.steps else ()


@dataclass(frozen=True)
class Problem:
    """Everything the model needs, in a fixed order.

    ``running``: the claims that run, as they are funded before anything starts; ``spent``: what has been charged;
    ``recall``: what starts may take where some of it may be recalled; ``once_changed``: the same in a world that has
    just changed, as it has where a bound rises; ``leeway``: which caps matter to what may start; ``ways``: a run's
    candidates (funded, and unfunded by its own choice); ``exact``: few enough runs that types keep their payers' order,
    so that every stage is solved on the master; ``due``: candidates promised to start now.
    """

    fleet: Fleet
    book: CapBook
    running: Funded
    spent: Spent
    recall: Recall
    once_changed: Recall
    leeway: Leeway
    candidates: list[Candidate]
    types: list[RunType]
    ways: dict[RunKey, list[int]]
    gangs: list[Gang]
    trees: list[Tree]
    refused: dict[RunKey, list[Refused]]
    exact: bool
    due: list[int] = field(default_factory=list)

    @property
    def used(self) -> list[int]:
        """Per cap, what running work takes, in the cap's unit."""
        return self.running.used

    def room_of(self, cap: int) -> int:
        """Rest of a cap, in its own unit; negative where it is overdrawn."""
        return self.book.caps[cap].limit - self.used[cap]

    @cached_property
    def tied(self) -> frozenset[int]:
        """Candidates of members of gangs."""
        return frozenset(c for gang in self.gangs for key in gang for c in self.ways.get(key, ()))

    @cached_property
    def gpus(self) -> int:
        """Every GPU there is."""
        return int(self.fleet.gpus.sum())

    @cached_property
    def _discount(self) -> int:
        return self.book.money.policy.spares.discount_milli

    def milli(self, active: bool) -> int:
        """Weight of one GPU in milli-GPUs: 1000, or the discount of a spare in thousandths."""
        return 1000 if active else self._discount

    @cached_property
    def _by_envelope(self) -> dict[int, dict[int, Payer]]:
        purses = {candidate.purse: candidate.payers for candidate in self.candidates if candidate.payers}
        return {purse: {payer.envelope: payer for payer in payers} for purse, payers in purses.items()}

    def type_of(self, candidate: int) -> RunType:
        """The type of a candidate, by its number."""
        return self.types[self.candidates[candidate].type]

    def spoken_for(self, key: RunKey) -> Candidate | None:
        """The candidate by which it is said what a run lacks: unfunded, where it may be, for who needs no money lacks
        none; None where it has no way to start.
        """
        ways = self.ways.get(key, [])
        unfunded = (c for c in ways if self.type_of(c).unfunded)
        return self.candidates[next(unfunded, ways[0])] if ways else None

    def payers(self, candidate: Candidate) -> Mapping[int, Payer]:
        """Envelope → payer of a candidate, were it funded."""
        return self._by_envelope.get(candidate.purse, {})

    def pays_on(self, source: Source | Payer) -> frozenset[int]:
        """Sites where this payer pays."""
        return self.book.money.paid_on(source.envelope, source.watch.off)

    def lane(self, source: Source | Payer, site: int) -> Lane:
        """Lane of this payer's money to a site."""
        return Lane(source.envelope, source.loan, self.book.money.region[site], source.limit, source.watch.on)


def _counted(shapes: list[Shape]) -> tuple[tuple[Shape, int], ...]:
    return tuple((shape, shapes.count(shape)) for shape in sorted(set(shapes), reverse=True))
