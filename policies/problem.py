"""What waits, lowered: runs that differ in age only become one type (ARCHITECTURE.md, the model)."""

from dataclasses import dataclass, field

from policies.caps import CapBook, Lane
from policies.claims import RunKey
from policies.fleet import Fleet
from policies.payers import Payer, Refused, payers
from policies.runs import RunRow
from policies.shapes import Lowered, PodLoad, Shape
from policies.trees import Tree


@dataclass(frozen=True, slots=True)
class Candidate:
    """A run that may start: its weight per GPU (stage 3) and its type."""

    run: RunRow
    weight: int
    type: int


@dataclass
class RunType:
    """Runs that only age tells apart. ``members``: candidates, heaviest (oldest) first, then by name.

    ``payers`` is empty for work that starts unfunded by its own choice (``unfunded``): stage 6.
    """

    index: int
    lowered: Lowered
    sites: frozenset[int]
    payers: tuple[Payer, ...]
    unfunded: bool
    load: PodLoad
    max_borrow: int | None
    members: list[int] = field(default_factory=list)

    @property
    def base_gpus(self) -> int:
        """Active GPUs at the least width."""
        return sum(self.lowered.base)

    @property
    def step_gpus(self) -> int:
        """Active GPUs of one step."""
        return sum(self.lowered.step)

    @property
    def pieces(self) -> list[tuple[Shape, int]]:
        """Shapes of the base, with how many of each a run has."""
        return _counted(self.lowered.pieces())

    @property
    def step_pieces(self) -> list[tuple[Shape, int]]:
        """Shapes of one step, likewise."""
        return _counted(self.lowered.step_pieces()) if self.lowered.steps else []


@dataclass(frozen=True)
class Problem:
    """Everything the model needs, in a fixed order. ``ways``: a run's candidates (funded, and unfunded by choice)."""

    fleet: Fleet
    book: CapBook
    used: list[int]
    candidates: list[Candidate]
    types: list[RunType]
    ways: dict[RunKey, list[int]]
    gangs: list[list[RunKey]]
    trees: list[Tree]
    refused: dict[RunKey, list[Refused]]

    def room_of(self, cap: int) -> int:
        """What a cap still leaves, in its own unit; negative where it is overdrawn."""
        return self.book.caps[cap].limit - self.used[cap]

    def lane(self, payer: Payer, site: int) -> Lane:
        """How this payer's money flows to a site."""
        return Lane(payer.envelope, payer.loan, site, payer.limit)


def _counted(shapes: list[Shape]) -> list[tuple[Shape, int]]:
    return [(shape, shapes.count(shape)) for shape in sorted(set(shapes), reverse=True)]


def lower_runs(
    runs: list[RunRow],
    fleet: Fleet,
    book: CapBook,
    used: list[int],
    tied: frozenset[RunKey],
    gangs: list[list[RunKey]],
    trees: list[Tree],
) -> Problem:
    """Lower the ``runs`` that may start. ``tied`` runs are bound to others (gang, tree) and stay types of their own."""
    money = book.money
    types: dict[tuple[object, ...], RunType] = {}
    candidates: list[Candidate] = []
    ways: dict[RunKey, list[int]] = {}
    refused: dict[RunKey, list[Refused]] = {}
    known_payers: dict[tuple[object, ...], tuple[tuple[Payer, ...], list[Refused]]] = {}
    known_sites: dict[object, frozenset[int]] = {}
    for run in runs:
        asked = (run.owner, run.flavor, run.sponsors, run.allow_borrow, run.limit)
        if asked not in known_payers:
            found, no = payers(money, run)
            known_payers[asked] = tuple(_bucketed(book, payer) for payer in found), no
        payer_set, refused[run.key] = known_payers[asked]
        if run.access not in known_sites:
            known_sites[run.access] = fleet.sites_for(run.access)
        weight = run.weight(money.policy, money.at)
        for unfunded in (False, True) if run.opportunistic else (False,):
            if not unfunded and not payer_set:
                continue
            capped = run.max_borrow is not None or any(p.run_gpus is not None for p in payer_set)
            own = run.key if run.key in tied or (capped and not unfunded) else None
            load = PodLoad(run.pod_cpu_milli, run.pod_memory)
            mine = () if unfunded else payer_set
            key = (run.access, run.lowered(), mine, unfunded, load, own)
            kind = types.get(key)
            if kind is None:
                kind = types[key] = RunType(
                    len(types), run.lowered(), known_sites[run.access], mine, unfunded, load, run.max_borrow
                )
            kind.members.append(len(candidates))
            ways.setdefault(run.key, []).append(len(candidates))
            candidates.append(Candidate(run, weight, kind.index))
    for kind in types.values():
        kind.members.sort(key=lambda c: (-candidates[c].weight, candidates[c].run.created, candidates[c].run.key))
    return Problem(
        fleet=fleet,
        book=book,
        used=used,
        candidates=candidates,
        types=list(types.values()),
        ways=ways,
        gangs=gangs,
        trees=trees,
        refused=refused,
    )


def _bucketed(book: CapBook, payer: Payer) -> Payer:
    """Time limits that no cap on time will ever weigh are the same limit."""
    period = int(book.money.policy.accounting_period)
    limit = min(period, period if payer.limit is None else payer.limit) if book.time_caps(payer.envelope) else None
    return Payer(payer.envelope, payer.rank, payer.order, limit, payer.run_gpus)
