"""Prices: what one more unit of a bound is worth to stage ``starts``, by the relaxation (docs/planner.md).

For a bound b of money or room, with LP(b) the optimum of the master's relaxation,

    price of b = LP(b + 1) − LP(b)          one more GPU, GPU-hour or credit there, all else as it is

No plan with d more is worth more than LP(b) + d × price: LP bounds every plan, and is concave in b. It is no promise
that a plan gains as much: that needs whole gangs, and where they lie. Duals alone would say too much, for where several
bounds hold at once each may carry the price of all of them, though none admits anything alone. So duals only say which
bounds to raise, and what raising them gains is computed (`planner.solver.ranging`).

What has nothing left has a price too, so this master is not that of the plan, which leaves such payers and full domains
out; nothing of it reaches the plan but the prices.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from msgspec import structs

from jobtree.world.plan import Price, Prices
from jobtree.world.tables.values import Floats
from planner.solver.highs import options
from planner.solver.ranging import Ranging
from planner.state.lower import Waiting
from planner.state.state import State
from policies.inputs.places import kinds
from policies.model import demand
from policies.model.linear import TooLargeError
from policies.model.master import Master, build

_NOISE: Final = 1e-6
"""Of a GPU of a run just created: less is the solver's arithmetic."""
_ABOVE: Final = 0.094179
"""How far above an integer a price counts as that integer: more than the arithmetic of a day's GPU-seconds (`_NOISE`).

Prices are fractions of small denominators, which all lie away from this number (it is a noble one): at 0.1 the last
bits of a float would say whether a price of so many and a tenth is rounded up or down.
"""


@dataclass(frozen=True)
class _Bound:
    """A bound as people know it, and how its rows' limits rise with one more unit of it."""

    rule: str
    subjects: tuple[str, ...]
    unit: str
    rises: dict[int, float]
    domains: tuple[str, ...] = ()


class _Hope(NamedTuple):
    """A bound and the most that raising it can gain, by the duals."""

    most: float
    bound: _Bound


def prices_of(state: State, waiting: Waiting) -> Prices | None:
    """The prices of a cycle's bounds, largest first; None where nothing waits that could be paid for, or
    the relaxation is too large to be solved again and again.

    A function of the snapshot and the time alone: whoever makes the plan of the cycle makes the same prices. It only
    reads, so it may run beside the search.
    """
    master = _master(state, waiting)
    if master is None:
        return None
    policy = master.problem.book.money.policy
    relaxation = Ranging(master.model, _gpus(master), options(policy.solver.seed, 0.0, 0))
    if relaxation.optimum is None:
        return None
    hopes = [_Hope(relaxation.most(bound.rises), bound) for bound in _bounds(master)]
    hopes = sorted((hope for hope in hopes if hope.most > _NOISE), key=lambda hope: -hope.most)
    unit = int(policy.age.unit)
    limits = state.effort.pricing
    found, tried = _tried(relaxation, hopes[: limits.tries * limits.listed], limits.listed, unit)
    listed = sorted(found, key=lambda price: -price.value)[: limits.listed]
    return Prices(
        relaxed=_up(unit * relaxation.optimum),
        weight=unit,
        bounds=[structs.replace(price, domains=tuple(found[price])) for price in listed],
        more=len(hopes) - tried + len(found) - len(listed),
    )


def _master(state: State, waiting: Waiting) -> Master | None:
    """What is relaxed, for stage ``starts``, with every bound in it; None where no run could be paid for, or it is too
    large.
    """
    problem = state.lowered(waiting, rises=True)
    if all(kind.unfunded for kind in problem.types):
        return None
    room = state.room()
    places = kinds(problem.fleet, np.where(problem.fleet.takes_work, np.maximum(room.free, 1), 0).tolist(), frozenset())
    try:
        master = build(problem, places, room.capacity, most=state.effort.pricing.terms)
    except TooLargeError:
        return None
    master.model.maximise(demand.objective(problem, master.starts, unfunded=False))
    return master


def _gpus(master: Master) -> Floats:
    """Active GPUs that a unit of each column starts funded, (columns,)."""
    found = np.zeros(len(master.model.cost))
    for candidate, column in master.starts.start.items():
        kind = master.problem.type_of(candidate)
        if not kind.unfunded:
            found[column] = kind.base_gpus
            if candidate in master.starts.steps:
                found[master.starts.steps[candidate]] = kind.step_gpus
    return found


def _tried(relaxation: Ranging, hopes: list[_Hope], most: int, unit: int) -> tuple[dict[Price, list[str]], int]:
    """Prices, each with its domains, until no hope may be among the ``most`` largest; and how many hopes that took.

    Kinds of domain in which a flavor's GPUs are worth the same are one.
    """
    steady = [relaxation.steady(hope.bound.rises) for hope in hopes]
    found: dict[Price, list[str]] = {}
    for tried, (hope, along) in enumerate(zip(hopes, steady, strict=True)):
        if len(found) >= most and sorted(price.value for price in found)[-most] >= unit * hope.most:
            return found, tried  # no dual is less than the gain
        bound = hope.bound
        if relaxation.most(bound.rises) <= _NOISE:
            continue
        gain, gpus = along or relaxation.risen(bound.rises)
        if gain > _NOISE:
            value, milli = _up(unit * gain), round(1000 * gpus)
            price = Price(rule=bound.rule, subjects=bound.subjects, unit=bound.unit, value=value, milli_gpus=milli)
            found.setdefault(price, []).extend(bound.domains)
    return found, len(hopes)


def _up(value: float) -> int:
    """A bound in GPU-seconds as an integer, never below it but for the solver's arithmetic."""
    return math.ceil(value - _ABOVE)


def _bounds(master: Master) -> Iterator[_Bound]:
    """Every cap and, per flavor and kind of domain, all rows of room, in the order of the model."""
    problem = master.problem
    caps: dict[int, dict[int, float]] = {}
    rooms: dict[tuple[int, str], dict[int, float]] = {}
    for row, (what, *key) in enumerate(master.model.row_keys):
        if what == "cap":
            caps.setdefault(key[0], {})[row] = 1.0
        elif what == "room":
            kind, part = key[:2]
            rooms.setdefault((kind, problem.fleet.site_flavor(part[0])), {})[row] = 1.0
    for cap, rises in caps.items():
        subjects = (problem.book.caps[each].subject for each in (cap, *master.merged.get(cap, ())))
        bound = problem.book.caps[cap]
        yield _Bound(bound.name, tuple(subjects), bound.measure.unit, rises)
    for (kind, flavor), rises in rooms.items():
        domains = (problem.fleet.domain_name(domain) for domain in master.kinds[kind].domains)
        yield _Bound("capacity", (flavor,), "GPU", rises, tuple(domains))
