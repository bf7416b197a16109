"""The money as the last cycle saw it, by which the seconds since then are charged (spec §3.6)."""

from collections.abc import Mapping

import msgspec
import pyarrow as pa

from jobtree.api.kinds.policy import PolicySpec
from jobtree.world.tables import values as col
from policies.inputs.fleet import Fleet
from policies.inputs.money import Money, read_money

_SAME = ("seen_discounts", "balances")
"""What cycles add to and no edit changes."""


def read_seen_money(tables: Mapping[str, pa.Table], policy: PolicySpec, fleet: Fleet, since: int) -> Money | None:
    """Money as the last cycle, at ``since``, saw it (spec §3.6); None where that is lost.

    ``fleet``: as it is now, with the selectors of both.
    """
    discounts = col.ints(tables["seen_discounts"], "milli").tolist()
    if not discounts:
        return None
    rates = tables["seen_rates"]
    millis = zip(col.texts(rates, "flavor"), col.ints(rates, "rate_milli").tolist(), strict=True)
    then = msgspec.structs.replace(
        policy,
        credit_rates={flavor: _decimal(milli) for flavor, milli in millis},
        spares=msgspec.structs.replace(policy.spares, discount=_decimal(discounts[-1])),
    )
    seen = {name: tables[f"seen_{name}"] for name in ("budgets", "envelopes", "aggregates", "use_caps")}
    seen |= {"quarantine": tables["quarantine"].slice(0, 0), **{name: tables[name] for name in _SAME}}
    return read_money(seen, then, fleet, since)


def _decimal(milli: int) -> int | float:
    return milli // 1000 if milli % 1000 == 0 else milli / 1000
