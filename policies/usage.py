"""Use of envelopes and aggregate caps, as Budget statuses and ``budgets usage`` show it (spec §1 Budget.status)."""

from collections.abc import Mapping

from jobtree.api.budget import AggregateUsage, BudgetStatus, EnvelopeUsage
from jobtree.api.lease import FundingClass
from jobtree.api.meta import Condition
from jobtree.api.scalars import Time
from policies.caps import CapBook, Lane
from policies.claims import UNFUNDED, LeaseRow
from policies.ledger import Spent

Classes = Mapping[tuple[str, str], FundingClass]
HOUR_MILLI = 3_600_000
_FIELD = {"owned": "owned_gpus", "shared": "shared_gpus", "borrowed": "borrowed_gpus", UNFUNDED: "unfunded_gpus"}


def plain(value: int, scale: int) -> int | float:
    """``value / scale``: an integer where it is whole."""
    whole, rest = divmod(value, scale)
    return whole if rest == 0 else value / scale


def committed(book: CapBook, lease: LeaseRow, limit_left: int | None) -> int:
    """Milli-GPU-seconds that an open funded lease is provided for ahead (spec §3.4)."""
    period = int(book.money.policy.accounting_period)
    end = book.money.envelopes[lease.envelope].end
    seconds = [period, *([] if end is None else [end - book.money.at]), *([] if limit_left is None else [limit_left])]
    return lease.milli(book.money.policy) * max(0, min(seconds))


def budget_statuses(
    book: CapBook,
    leases: list[LeaseRow],
    classes: Classes,
    used: list[int],
    spent: Spent,
    limits_left: Mapping[tuple[str, str], int | None],
) -> dict[str, BudgetStatus]:
    """Status by Budget. ``leases``: open ones after the plan, with ``classes``; ``used``: per cap, after the plan."""
    money = book.money
    gpus: dict[int, dict[str, int]] = {i: {} for i in range(len(money.envelopes))}
    ahead = dict.fromkeys(gpus, 0)
    over: dict[str, str] = {}
    for lease in leases:
        if lease.envelope < 0:
            continue
        name = classes[lease.namespace, lease.name]
        envelope = money.envelopes[lease.envelope]
        row = gpus[lease.envelope]
        key = _FIELD[name] if lease.active else "spare_gpus"
        row[key] = row.get(key, 0) + lease.gpus
        if name != UNFUNDED:
            ahead[lease.envelope] += committed(book, lease, limits_left.get(lease.run_key))
        elif envelope.open_at(money.at):
            over.setdefault(envelope.budget, envelope.name)
    found: dict[str, BudgetStatus] = {}
    for budget in sorted({e.budget for e in money.envelopes}):
        mine = [i for i, e in enumerate(money.envelopes) if e.budget == budget]
        found[budget] = BudgetStatus(
            envelopes=tuple(_envelope(book, i, gpus[i], ahead[i], used, spent) for i in mine),
            aggregate_caps=tuple(_aggregates(book, budget, gpus, ahead, used, spent)),
            conditions=(_healthy(over.get(budget)),),
            updated=Time(money.at),
        )
    return found


def _envelope(
    book: CapBook, index: int, gpus: Mapping[str, int], ahead: int, used: list[int], spent: Spent
) -> EnvelopeUsage:
    money = book.money
    envelope = money.envelopes[index]
    hours = envelope.max_gpu_milliseconds
    credit = envelope.max_millicredits
    rate = money.rate_milli(index)
    charged = spent.envelope.get(index, 0)
    rated = spent.credits.get(index, 0)
    return EnvelopeUsage(
        name=envelope.name,
        **gpus,
        headroom_gpus=headroom(book, index, used),
        gpu_seconds_consumed=plain(charged, 1000),
        gpu_hours_consumed=plain(charged, HOUR_MILLI),
        gpu_hours_committed=plain(ahead, HOUR_MILLI),
        headroom_gpu_hours=None if hours is None else plain(max(0, hours - charged - ahead), HOUR_MILLI),
        credits_consumed=None if credit is None else plain(rated, 1000 * HOUR_MILLI),
        credits_committed=None if credit is None else plain(ahead * rate, 1000 * HOUR_MILLI),
        headroom_credits=None
        if credit is None
        else plain(max(0, credit * HOUR_MILLI - rated - ahead * rate), 1000 * HOUR_MILLI),
    )


def headroom(book: CapBook, index: int, used: list[int], *, loan: bool = False) -> int | float:
    """GPUs that every concurrency cap of an envelope still leaves to its owner, or with ``loan`` to a borrower.

    That is on the site where it is most. ``used``: milli-GPUs per cap of the book.
    """
    if not book.money.envelopes[index].pays_at(book.money.at):
        return 0
    rooms = []
    for site in sorted(book.money.pays_on[index]) or [-1]:
        touched = [cap for cap, _ in book.touches(Lane(index, loan, site, None)) if not book.caps[cap].ahead]
        rooms.append(min(book.caps[cap].limit - used[cap] for cap in touched))
    return plain(max(0, *rooms), 1000)


def _aggregates(
    book: CapBook,
    budget: str,
    gpus: Mapping[int, Mapping[str, int]],
    ahead: Mapping[int, int],
    used: list[int],
    spent: Spent,
) -> list[AggregateUsage]:
    found = []
    for cap in book.money.aggregates:
        if cap.budget != budget:
            continue
        total: dict[str, int] = {}
        for member in cap.envelopes:
            for key, count in gpus[member].items():
                total[key] = total.get(key, 0) + count
        charged = sum(spent.envelope.get(e, 0) for e in cap.envelopes)
        coming = sum(ahead[e] for e in cap.envelopes)
        rated = sum(spent.credits.get(e, 0) for e in cap.envelopes)
        coming_rated = sum(ahead[e] * book.money.rate_milli(e) for e in cap.envelopes)
        headroom = next(
            (
                book.caps[i].limit - used[i]
                for i in range(len(book.caps))
                if book.caps[i].rule == "aggregate"
                and book.caps[i].subject == f"{budget}/{cap.name}"
                and not book.caps[i].ahead
            ),
            0,
        )
        hours, credit = cap.max_gpu_milliseconds, cap.max_millicredits
        found.append(
            AggregateUsage(
                name=cap.name,
                **total,
                headroom_gpus=plain(max(0, headroom), 1000),
                gpu_seconds_consumed=plain(charged, 1000),
                gpu_hours_consumed=plain(charged, HOUR_MILLI),
                gpu_hours_committed=plain(coming, HOUR_MILLI),
                headroom_gpu_hours=None if hours is None else plain(max(0, hours - charged - coming), HOUR_MILLI),
                credits_consumed=None if credit is None else plain(rated, 1000 * HOUR_MILLI),
                credits_committed=None if credit is None else plain(coming_rated, 1000 * HOUR_MILLI),
                headroom_credits=None
                if credit is None
                else plain(max(0, credit * HOUR_MILLI - rated - coming_rated), 1000 * HOUR_MILLI),
            )
        )
    return found


def _healthy(envelope: str | None) -> Condition:
    if envelope is None:
        return Condition(type="Healthy", status="True", reason="WithinCaps", message="Every cap holds.")
    message = f"Envelope {envelope} has work beyond its caps; it runs unfunded until there is room."
    return Condition(type="Healthy", status="False", reason="Overcommitted", message=message)
