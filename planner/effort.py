"""Limits of the search: how large a problem may be for each way of solving it, and how much is tried (docs/planner.md).

None is a time: with the same effort the same snapshot gives the same plan, whatever the machine does.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Branching:
    """The search of `planner.large.branching`.

    ``big``: part of the bound that a start is worth that is branched on. ``gangs``: most LPs of the search for its
    leaf; ``further``: most LPs beyond those, but for the way to a first point, and ``columns``: most columns that they
    have together. ``looks``: counts that are tried both ways at a node before one of them is branched on.
    """

    big: float = 0.005
    gangs: int = 32
    further: int = 400
    columns: int = 6_000_000
    looks: int = 4


@dataclass(frozen=True)
class Rounding:
    """Rounding of a large relaxation, in `planner.large.bands` and `planner.large.dive`.

    ``bands``: least Active GPUs of the run types that a band makes whole. ``far``: how often Policy ``solver.gap`` it
    may end away from the bound before the big gangs are solved as a MIP; ``share``: how often that solve may.
    ``batch``: counts nearer than this to a whole number are rounded together, fewer where that loses much. ``drop``:
    part of the bound that one rounding may lose before the other side is tried. ``unlikely``: starts that would cost
    this part of the bound are left out. ``resets``: most times that a single type is made to start less; then all may.
    ``nodes``: most nodes that are rounded; ``beside``: so many side by side, each by a thread.
    """

    bands: tuple[int, ...] = (64, 16, 8, 4, 0)
    far: int = 10
    share: int = 3
    batch: float = 0.45
    drop: float = 1e-5
    unlikely: float = 2e-5
    resets: int = 20
    nodes: int = 8
    beside: int = 2


@dataclass(frozen=True)
class Components:
    """Prices on rows of room (`planner.large.components`).

    ``largest``: most of a master's integer columns that one part may have: else the parts are no easier than the whole.
    ``workers``: threads that solve parts side by side; no answer depends on them. ``rounds``: most rounds of prices;
    ``columns``: most columns that all rounds together solve; two rounds are made of any master. ``steps``: how far new
    prices move from the best so far to the duals of the mixture, by round; the last one stays. ``nodes``: most
    branch-and-bound nodes of one part at a time. ``compact``: columns up to which a part is solved without what HiGHS
    takes milliseconds to set up: thousands of small families. ``choice_gap``, ``choice_nodes``: where the choice among
    proposals ends: what it leaves the last pass finds. ``rest``: of what the prices say that parts could still gain,
    what the last pass does not look for.
    """

    largest: float = 0.25
    workers: int = 4
    rounds: int = 10
    columns: int = 80_000
    steps: tuple[float, ...] = (0.2, 0.4, 0.5)
    nodes: int = 200
    compact: int = 64
    choice_gap: float = 0.001
    choice_nodes: int = 50
    rest: float = 0.1


@dataclass(frozen=True)
class Placing:
    """Placement where construction strands pieces.

    ``nodes``: most branch-and-bound nodes of `planner.placement.allot`; ``columns``: most columns of
    domains that it is done with at all. ``domains``: most domains in which `planner.placement.repair` tries a piece,
    those with most free GPUs first; ``moved``: most pieces that are taken out of a domain for one.
    """

    nodes: int = 50
    columns: int = 10_000
    domains: int = 12
    moved: int = 24


@dataclass(frozen=True)
class Paying:
    """Payment of the starts of a problem that is not exact (`planner.search.pay`).

    ``in_parts``: columns from which on starts and payers are sought in the relaxation first; ``whole``: most columns of
    such a model that may be solved as it is; ``much``: part of what all starts are worth that the first way may lose
    before the model is solved as it is. ``nodes``: most branch-and-bound nodes. ``near``: what a rank of a GPU's payer
    counts, as part of what the GPU itself is worth at least. ``light``: starts on each cap, the lightest, that may make
    way for those that the relaxation pays in part.
    """

    in_parts: int = 10_000
    whole: int = 20_000
    much: float = 0.01
    nodes: int = 30
    near: float = 0.01
    light: int = 12


@dataclass(frozen=True)
class Pricing:
    """Prices of a plan (`planner.plan.prices`).

    ``listed``: most bounds, the largest; ``tries``: how many bounds at most are raised to find one of them; ``terms``:
    most terms of the relaxation that they are made of.
    """

    listed: int = 32
    tries: int = 2
    terms: int = 500_000


@dataclass(frozen=True)
class Helping:
    """Remedies that are tried to make a run start (`planner.remedies`).

    ``wider``: how many times as large a rise may become where others that wait take what it gives; ``rounds``: how
    often more runs are found that would start instead. Where many wait, ``field``: the runs that a change is tried
    against first, before it is tried against all; ``rivals``: how many of them, of those that could start then, are
    planned with the run. ``events``: most cycles ahead. ``lenders``: nearest envelopes whose terms are looked at;
    ``domains``: most domains to which nodes are added, those with most GPUs first. ``seats``: most nodes of a relief
    model; beyond, only the domains nearest to holding the run are looked at; ``nodes``: most branch-and-bound nodes of
    one answer.
    """

    wider: int = 16
    rounds: int = 3
    field: int = 200
    rivals: int = 20
    events: int = 12
    lenders: int = 6
    domains: int = 4
    seats: int = 2_000
    nodes: int = 5_000


@dataclass(frozen=True)
class Cutting:
    """Cuts for promises (`planner.cutting`).

    ``domains``: most domains that are weighed against each other, those with most free room; where ``groups`` might go
    in these, no more of them than the start needs. ``nodes``: most branch-and-bound nodes of one
    solve; ``walk``: most options that are tried one by one for the order among equals, of more their sum of places is
    least. ``together``: most starts beside which one more is laid anew, the first. ``tries``: most starts of one cycle
    for which opportunistic work may go, the oldest; ``dated``: most runs without a promise for which one cycle looks
    for cuts, those first in order; ``work``: most work of these, in columns of models that are solved and nodes that
    are looked at: no run is begun to be weighed beyond it.
    """

    domains: int = 32
    groups: int = 24
    nodes: int = 2_000
    walk: int = 60
    together: int = 16
    tries: int = 64
    dated: int = 64
    work: int = 40_000


@dataclass(frozen=True)
class Odds:
    """Chances to be drawn (`planner.cutting.odds`).

    ``pools``: most pools that are gone through for exact ones. ``columns``: most columns of all the models that are
    solved for exact ones, and again for simulated ones; ``of_many``: the same of a whole cycle where many runs wait.
    ``large``: most columns of a model for which more than the first pool is computed: beyond, chances are estimates.
    ``draws``: of simulated ones, where their pools allow so many: a standard error of at most 0.025. ``courses``: most
    ways in which draws may go before another one that are told apart for its odds, and ``solves``: models that one of
    them is taken to solve at one turn, as its columns are counted before.
    """

    pools: int = 256
    columns: int = 12_000
    of_many: int = 1_000
    large: int = 3_000
    draws: int = 400
    courses: int = 64
    solves: int = 8


@dataclass(frozen=True)
class Explaining:
    """Words on money that is missing (`planner.reasons.shortage`).

    ``rounds``: most solves of one shortage again, each counting more running work that its rises would pay first;
    ``nodes``: most branch-and-bound nodes of one solve.
    """

    rounds: int = 4
    nodes: int = 1_000


@dataclass(frozen=True)
class Dating:
    """Dates of promises (`planner.dates`).

    ``holding``, ``promising``: most known times that are looked at where few runs wait, to see what promises need, and
    to make them. ``passing``: most runs that are promised nothing of which it is asked whether all that can start now
    do. Where many wait, ``dated``: most runs without a promise for which one is looked for, the oldest; ``sooner``: how
    often an earlier time is looked for in a cycle, for the oldest promises first.
    """

    holding: int = 24
    promising: int = 64
    passing: int = 32
    dated: int = 300
    sooner: int = 32


@dataclass(frozen=True)
class Effort:
    """One value, handed down from the planner's front; what it is by default is what every cycle uses.

    ``exact``: most runs that wait of a problem that is solved to the end, with all stages on one master.
    ``small``: most integer columns of a master that is solved whole at once, and again with kinds split; ``middle``: of
    a block that is solved whole after its bands; ``again``: of a large master that is solved once more near its first
    solution, where its plan ends more than ``close`` times Policy ``solver.gap`` from the bound, but for columns of
    which one more or less costs more than ``dear`` of what the plan lacks.
    ``rounds``: most times that a master is solved, each with more kinds split; ``near``: how often ``solver.gap`` a
    large problem may end away from its bound and not be solved again. ``seats``: most seats of a master that goes down
    to nodes, where its domains left a gap. ``nodes``, ``exact_nodes``, ``rest_nodes``: most branch-and-bound nodes of
    one solve, on exact problems, and where most columns stay as they are. ``steps``: most steps of simplex for the
    bound of a later stage of a large problem. ``growing``: most rows of growth that are solved to the end.
    ``moments_of_many``: most known times that are looked at where many runs wait, and no more than make ``looked_at``
    nodes, but ``fewest_moments`` at least.
    """

    exact: int = 100
    small: int = 400
    middle: int = 3_000
    again: int = 4_000
    close: int = 2
    dear: float = 0.3
    rounds: int = 8
    near: int = 10
    seats: int = 1_000
    nodes: int = 2_000
    exact_nodes: int = 50_000
    rest_nodes: int = 100
    steps: int = 4_000
    growing: int = 30
    moments_of_many: int = 12
    fewest_moments: int = 4
    looked_at: int = 60_000
    branching: Branching = Branching()
    rounding: Rounding = Rounding()
    components: Components = Components()
    placing: Placing = Placing()
    paying: Paying = Paying()
    pricing: Pricing = Pricing()
    helping: Helping = Helping()
    cutting: Cutting = Cutting()
    odds: Odds = Odds()
    explaining: Explaining = Explaining()
    dating: Dating = Dating()

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
