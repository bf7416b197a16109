"""Who may pay, how near, and every cap, read off spec §3 one by one.

A cap is a limit with a function that says what one GPU counts against it; 0 where it does not.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from tests.reference.facts import Envelope, Key, Node, Run, Use, World

SPONSOR = 6
"""The rank of a sponsor; own 0, parents 1, siblings 2, children 3, grandparents 4, cousins 5."""

LOANS = "loans of "
USE = "use of "
CREDIT = 3_600_000
"""One millicredit in milli-GPU-seconds × millicredits per GPU-hour."""


class Payment(NamedTuple):
    """One GPU on ``node`` (None = gone) for a run of ``owner``, paid by ``envelope``, as a loan or not.

    ``left``: of its run's time limit.
    """

    owner: str
    loan: bool
    envelope: Envelope
    node: Node | None
    active: bool
    left: int | None


class Cap(NamedTuple):
    """Σ weigh(payment) over all payments ≤ limit. ``ahead``: a cap on hours or credits, which looks ahead (§3.4).

    ``charge``: what a GPU-second that was charged at a credit rate counts, from ``since`` of a payment on; ``recalls``:
    one at which claims are recalled (§3.8): GPUs of an envelope, aggregate or subtree.
    """

    name: str
    limit: int
    weigh: Callable[[Payment], int]
    ahead: bool
    charge: Callable[[Payment, int], int]
    recalls: bool
    since: Callable[[Payment], int]


def parents_of(world: World, owner: str, also: str = "") -> list[str]:
    """Spec §1: the parents its Budgets name, else the longest proper prefix that has a Budget with an envelope.

    ``also``: counts as if it had one.
    """
    named = world.parents.get(owner)
    if named is not None:
        return named
    parts = owner.split(":")
    prefixes = [":".join(parts[:length]) for length in range(len(parts) - 1, 0, -1)]
    return [prefix for prefix in prefixes if prefix in world.holders or prefix == also][:1]


def line_of(world: World, owner: str, also: str = "") -> set[str]:
    """An owner and all above it."""
    return {owner}.union(*(line_of(world, parent, also) for parent in parents_of(world, owner, also)))


def rank(world: World, claimant: str, payer: str) -> int | None:
    """Spec §3.1: how near; None for owners that are no relatives."""
    above = set(parents_of(world, claimant))
    nearness = (
        claimant == payer,
        payer in above,
        bool(above & set(parents_of(world, payer))),
        claimant in parents_of(world, payer),
        any(payer in parents_of(world, parent) for parent in above),
        bool(line_of(world, claimant) & line_of(world, payer)),
    )
    return next((number for number, holds in enumerate(nearness) if holds), None)


def payers(world: World, run: Run) -> dict[Key, int]:
    """Spec §3.1 Who and §3.3 When: the envelopes that may pay for a run, with their ranks.

    "Family needs no lending policy but `sharing: none` opts out": what then may lend is a sponsor like any other.
    """
    found = {}
    for key, envelope in world.envelopes.items():
        near = rank(world, run.owner, envelope.owner)
        if near is None or not (near == 0 or envelope.row["sharing"] == "family"):
            listed = envelope.owner in run.row["sponsors"] and run.row["allow_borrow"]
            near = SPONSOR if listed and _lends(envelope, run.owner) else None
        if (
            near is not None
            and envelope.flavor == run.row["flavor"]
            and envelope.pays_at(world.at)
            and _has_time(world, run, envelope)
        ):
            found[key] = near
    return found


def _lends(envelope: Envelope, owner: str) -> bool:
    """Spec §3.1: ``to`` empty or ``*`` = anyone; trailing ``*`` = prefix; ``org:x:*`` does not match ``org:x``."""
    to = envelope.row["lending_to"] or ["*"]
    listed = any(owner.startswith(name[:-1]) if name.endswith("*") else owner == name for name in to)
    return bool(envelope.row["lending_allow"]) and listed


def time_left(run: Run, envelope: Envelope) -> int | None:
    """The limit of a run that starts now on this envelope: its own, else ``perRun.defaultTime`` (spec §1)."""
    default: int | None = envelope.row["per_run_default_time"]
    return run.limit if run.limit is not None else default


def _has_time(world: World, run: Run, envelope: Envelope) -> bool:
    """``perRun.maxTime``, and ``pastWindow: refuse``: then only a run whose limit ends inside the window starts."""
    left, most, end = time_left(run, envelope), envelope.row["per_run_time"], envelope.row["end"]
    if most is not None and (left is None or left > most):
        return False
    inside = end is None or (left is not None and world.at + left <= end)
    return inside or world.policy.funding.past_window == "allow"


def pays_on(world: World, envelope: Envelope, node: Node) -> bool:
    """Spec §3.2 Where; ``crossLocation: allow`` makes the selector a preference."""
    anywhere = world.policy.funding.cross_location == "allow"
    return node.flavor == envelope.flavor if anywhere else envelope.matches(node)


def looks_at(world: World, use: Use, owner: str) -> bool:
    """Spec §1 ``useCaps``: "runs of this owner (`subtree`: and of its descendants)", while it binds."""
    below = use.row["scope"] == "subtree" and (
        use.owner in line_of(world, owner) or use.owner in line_of(world, owner, use.owner)
    )
    return use.open_at(world.at) and (owner == use.owner or below)


def is_shut(world: World, run: Run, envelope: Envelope, node: Node) -> bool:
    """Spec §1 ``useCaps[].perRun.maxTime``: a run whose limit, stated or a payer's default, is not within it waits."""
    left = time_left(run, envelope)
    return any(
        looks_at(world, use, run.owner) and use.matches(node) and (left is None or left > most)
        for use in world.uses
        if (most := use.row["per_run_time"]) is not None
    )


def milli(world: World, *, active: bool) -> int:
    """Spec §3.4: spares count × ``spares.discount``."""
    return 1000 if active else world.policy.spares.discount_milli


def caps(world: World) -> list[Cap]:
    """Spec §3.4 How much: every cap with its whole limit."""
    return [cap for name, row, counts, end in _pools(world) for cap in _caps(world, name, row, counts, end)]


_Pool = tuple[str, dict[str, int | None], Callable[[Payment], bool], int | None]


def _pools(world: World) -> Iterator[_Pool]:
    """(name, limits, which payments count, end of its window)."""
    for envelope in world.envelopes.values():
        row, label = envelope.row, "/".join(envelope.key)
        own = {"gpus": row["concurrency"], "hours": row["max_gpu_milliseconds"], "credits": row["max_millicredits"]}
        yield label, own, _in_envelope(world, envelope), row["end"]
        lent = {"gpus": row["lending_concurrency"], "hours": row["lending_gpu_milliseconds"], "credits": None}
        yield f"{LOANS}{label}", lent, _in_loans(envelope), row["end"]
    for row in world.aggregates:
        both = {"gpus": row["concurrency"], "hours": row["max_gpu_milliseconds"], "credits": row["max_millicredits"]}
        members = {(row["budget"], name) for name in row["envelopes"]}
        yield f"{row['budget']}/{row['name']}", both, _in_aggregate(members), None
    for use in world.uses:
        row = use.row
        whole = {"gpus": row["concurrency"], "hours": row["max_gpu_milliseconds"], "credits": row["max_millicredits"]}
        yield f"{USE}{'/'.join(use.key)}", whole, _in_use(world, use), row["end"]


def _in_envelope(world: World, envelope: Envelope) -> Callable[[Payment], bool]:
    """Spec §1 ``scope: subtree``: also, while its window is open, what envelopes of descendants pay on nodes that its
    flavor and selector match.
    """

    def counts(payment: Payment) -> bool:
        if payment.envelope.key == envelope.key:
            return True
        below = payment.envelope.owner != envelope.owner and envelope.owner in line_of(world, payment.envelope.owner)
        subtree = envelope.row["scope"] == "subtree" and envelope.open_at(world.at)
        same = payment.envelope.flavor == envelope.flavor
        return below and subtree and same and envelope.matches(payment.node)

    return counts


def _in_loans(envelope: Envelope) -> Callable[[Payment], bool]:
    """Spec §3.4 lending caps."""
    return lambda paid: paid.envelope.key == envelope.key and paid.loan


def _in_aggregate(members: set[Key]) -> Callable[[Payment], bool]:
    return lambda payment: payment.envelope.key in members


def _in_use(world: World, use: Use) -> Callable[[Payment], bool]:
    """Spec §1 ``useCaps``: "on matching nodes, whoever pays"."""

    def counts(payment: Payment) -> bool:
        alike = use.flavor in (None, payment.envelope.flavor) and use.matches(payment.node)
        return alike and looks_at(world, use, payment.owner)

    return counts


def _caps(
    world: World, name: str, limits: dict[str, int | None], counts: Callable[[Payment], bool], end: int | None
) -> Iterator[Cap]:
    """GPUs now; hours and credits by the look-ahead of spec §3.4: width × min(P, window left, time limit left)."""
    period = int(world.policy.accounting_period)

    def now(paid: Payment) -> int:
        return milli(world, active=paid.active) if counts(paid) else 0

    def ahead(paid: Payment) -> int:
        ends = [each - world.at for each in (paid.envelope.row["end"], end) if each is not None]
        span = max(0, min([period, *ends, *([] if paid.left is None else [paid.left])]))
        return now(paid) * span

    def rated(paid: Payment) -> int:
        return ahead(paid) * rate_of(world, paid.envelope)

    def second(paid: Payment, _: int) -> int:
        return now(paid)

    def rated_second(paid: Payment, rate: int) -> int:
        return now(paid) * rate

    starts = {f"{USE}{'/'.join(use.key)}": use.row["start"] or 0 for use in world.uses}

    def since(paid: Payment) -> int:
        return int(starts[name] if name in starts else paid.envelope.row["start"] or 0)

    if limits["gpus"] is not None:
        recalls = not name.startswith((LOANS, USE))
        yield Cap(f"GPUs of {name}", 1000 * limits["gpus"], now, False, lambda *_: 0, recalls, since)
    if limits["hours"] is not None:
        yield Cap(f"hours of {name}", limits["hours"], ahead, True, second, False, since)
    if limits["credits"] is not None:
        yield Cap(f"credits of {name}", CREDIT * limits["credits"], rated, True, rated_second, False, since)


def rate_of(world: World, envelope: Envelope) -> int:
    """Millicredits per GPU-hour."""
    return round(1000 * world.policy.credit_rates.get(envelope.flavor, 0))
