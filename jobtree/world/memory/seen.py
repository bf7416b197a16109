"""Money as the last cycle saw it, so that the next one can replay the seconds between them (spec §3.6).

Budgets and rates may be edited between two cycles, and an edit takes effect at the cycle that first sees it. So each
cycle leaves the Budgets, the credit rates and the discount of spares as it saw them in a ConfigMap, written only when
they changed, and their digest in its Plan. The time of the last cycle is that of the last Plan that was carried out. A
record that is missing, unreadable or not the one that the Plan names is lost: `of` says so.
"""

import base64
import hashlib
import zlib
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from jobtree.api import Budget, ObjectMeta, Plan, Time, dec_hook, enc_hook
from jobtree.api.kinds.budget import BudgetSpec
from jobtree.api.kinds.policy import PolicySpec
from jobtree.api.values.scalars import exact
from jobtree.world.memory.cycles import moment_of

NAMESPACE: Final = "jobtree-system"
"""The planner's namespace in a state file."""
RECORD: Final = "jobtree-budgets"
"""Name of the ConfigMap."""
PLAIN: Final = 2**19
"""Most bytes of Budgets that are kept as text; more are compressed, as an object holds a mebibyte at most."""

_BUDGETS, _PACKED, _POLICY = "budgets", "budgets.zlib", "policy"


class Discount(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Cost of a spare GPU in thousandths of a whole one, from ``since`` on; without it from the very beginning."""

    milli: int
    since: Time | None = None


class _Rates(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    credit_rates: dict[str, int]
    discounts: tuple[Discount, ...]


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """Budgets in the order of their names, millicredits per GPU-hour by flavor, and the discounts so far, in order."""

    budgets: tuple[Budget, ...]
    credit_rates: dict[str, int]
    discounts: tuple[Discount, ...]


def rates_milli(policy: PolicySpec) -> dict[str, int]:
    """The Policy's credit rates in millicredits per GPU-hour."""
    return {flavor: int(1000 * exact(rate)) for flavor, rate in sorted(policy.credit_rates.items())}


def discounts(before: Iterable[Discount], policy: PolicySpec, at: int) -> tuple[Discount, ...]:
    """The discounts so far, with the Policy's own from ``at`` on where it is another one."""
    known, now = tuple(before), policy.spares.discount_milli
    if not known:
        return (Discount(milli=now),)
    return known if known[-1].milli == now else (*known, Discount(milli=now, since=Time(at)))


def record(budgets: Iterable[Budget], policy: PolicySpec, before: "Seen | None", at: int) -> dict[str, str]:
    """The ConfigMap's data after a cycle at ``at`` that saw these Budgets."""
    specs = {budget.name: budget.spec for budget in budgets}
    rates = _Rates(
        credit_rates=rates_milli(policy), discounts=discounts(() if before is None else before.discounts, policy, at)
    )
    text = _json(specs)
    if len(text) <= PLAIN:
        return {_BUDGETS: text.decode(), _POLICY: _json(rates).decode()}
    return {_PACKED: base64.b64encode(zlib.compress(text, 9)).decode(), _POLICY: _json(rates).decode()}


def digest_of(data: Mapping[str, str]) -> str:
    """SHA-256 of a record, hex: what the Plan names it by."""
    return hashlib.sha256(text_of(data)).hexdigest()


def text_of(data: Mapping[str, str]) -> bytes:
    """A record as bytes, of which its digest is taken."""
    return _json(dict(data))


def newest(plans: Iterable[Plan]) -> Plan | None:
    """The newest of them, by the time that they are for and their number in that second."""
    return max(plans, key=moment, default=None)


def moment(plan: Plan) -> tuple[int, int, str]:
    """Sort key of Plans."""
    told = moment_of(plan.name)
    return int(plan.spec.at), told.number if told else 0, plan.name


def last_plan(plans: Iterable[Plan]) -> Plan | None:
    """The last Plan that was carried out."""
    carried_out = [plan for plan in plans if plan.status.phase == "Applied"]
    return newest(carried_out)


class World(NamedTuple):
    """Digest of what a cycle was given (see `given`), and when the world last changed by then, Unix seconds."""

    given: str
    changed: int


def last_world(plans: Iterable[Plan]) -> World | None:
    """World that the last cycle was given, whether it was carried out or not: another one may be half written.

    None where there was none, or by a version that did not say.
    """
    plan = newest(plans)
    if plan is None or plan.spec.given is None or plan.spec.changed is None:
        return None
    return World(plan.spec.given, int(plan.spec.changed))


def of(plan: Plan | None, data: Mapping[str, str] | None) -> Seen | None:
    """Find what the cycle of ``plan`` saw; None where that is lost, or there was none."""
    if plan is None or data is None or plan.spec.budgets != digest_of(data):
        return None
    try:
        packed = data.get(_PACKED)
        text = data[_BUDGETS].encode() if packed is None else zlib.decompress(base64.b64decode(packed))
        specs = msgspec.json.decode(text, type=dict[str, BudgetSpec], dec_hook=dec_hook)
        rates = msgspec.json.decode(data[_POLICY], type=_Rates, dec_hook=dec_hook)
    except (KeyError, ValueError, msgspec.DecodeError, zlib.error):  # ValueError: not base64, or not UTF-8
        return None
    budgets = tuple(Budget(metadata=ObjectMeta(name=name), spec=specs[name]) for name in sorted(specs))
    return Seen(budgets=budgets, credit_rates=rates.credit_rates, discounts=rates.discounts)


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value, enc_hook=enc_hook, order="sorted")
