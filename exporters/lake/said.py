"""What plans say of waits, prices, promises and draws, as rows of a fold (`exporters.lake.foldtables`)."""

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from exporters.lake.foldtables import WAITS
from jobtree.api.kinds.plan import Lottery
from jobtree.api.kinds.reservation import Reservation, ReservationStatus
from jobtree.world.plan import Prices, PromiseUpdate, Wait


def promises(at: int, made: Iterable[Reservation], moved: Iterable[PromiseUpdate]) -> Iterator[dict[str, Any]]:
    """Rows of `foldtables.PROMISES`: promises that a plan makes, moves or ends; ``at``: its time, Unix seconds."""
    for each in made:
        start = int(each.spec.earliest_start)
        yield {
            "time": at,
            "namespace": each.metadata.namespace,
            "name": each.metadata.name,
            "run": each.spec.run_ref.run_name,
            "state": "Pending",
            "start": start,
            "p90": _late(each.status),
        }
    for update in moved:
        start_now = update.status.earliest_start
        yield {
            "time": at,
            "namespace": update.namespace,
            "name": update.name,
            "run": None,
            "state": update.status.state,
            "start": None if start_now is None else int(start_now),
            "p90": _late(update.status),
        }


def _late(status: ReservationStatus) -> int | None:
    late = status.forecast.p90 if status.forecast is not None else None
    return None if late is None else int(late)


def draws(at: int, lottery: Lottery | None) -> Iterator[dict[str, Any]]:
    """Rows of `foldtables.DRAWS`: who could be drawn, pick by pick, and who was; ``at``: the plan's time."""
    for draw in lottery.draws if lottery is not None else ():
        for number, (pool, pick) in enumerate(zip(draw.pools, draw.picks, strict=True)):
            for mine in pool:
                yield {
                    "time": at,
                    "reservation": draw.reservation,
                    "pick": number,
                    "owner": str(mine.owner),
                    "tokens": len(mine.tokens),
                    "owners": len(pool),
                    "drawn": pick in mine.tokens,
                }


def prices(prices: Prices, waits: Iterable[Wait]) -> dict[tuple[str, ...], dict[str, Any]]:
    """What `foldtables.PRICES` keeps of a plan's prices; the first of a bound is its largest."""
    named = {(short.rule, short.subject) for wait in waits for short in wait.shorts}
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    for price in prices.bounds:
        row = {
            "rule": price.rule,
            "unit": price.unit,
            "centi_value": round(100 * price.value / prices.weight),
            "centi_gpus": round(price.milli_gpus / 10),
        }
        alone = {price.subjects[0]} if len(price.subjects) == 1 else set()
        for subject in (*price.subjects, *(f"domain={domain}" for domain in price.domains)):
            if subject in alone or (price.rule, subject) in named:
                found.setdefault((price.rule, subject), {**row, "subject": subject})
    return found


def wait(wait: Wait) -> dict[str, Any]:
    """What `foldtables.WAITS` keeps of a wait."""
    row = {field: getattr(wait, field) for field in WAITS.names[:-2]}
    return {**row, "shorts": [msgspec.to_builtins(short) for short in wait.shorts]}
