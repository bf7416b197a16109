"""Estimates: about when each run that is promised nothing will start, at a cost that hangs little on how many wait.

Runs are taken in their order, each beside what is promised and those before it, from a fluid picture of what comes
free (`planner.forecast.fluid`): once with the ends that are as likely as not (``p50``), once with those of nine in
ten (``p90``).
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Final, NamedTuple

from jobtree.api.kinds.run import Eta
from jobtree.api.values.scalars import Time, milli
from jobtree.world.tables.snapshot import Snapshot
from planner.forecast.calendar import estimates as _estimates
from planner.forecast.calendar import expected
from planner.forecast.durations import Durations, ended
from planner.forecast.fluid import Ask, Fluid, Held, grid
from planner.forecast.lanes import LaneBook, Lanes
from planner.forecast.starts import Dated
from planner.state.state import State
from policies.inputs.claims import RunKey
from policies.inputs.fleet import Access
from policies.lifecycle.endings import started

MOST: Final = 9
"""Cases of ten that ``p90`` counts on."""
Spans = Mapping[RunKey, int | None]
"""By run, Unix seconds or seconds; None where it is not known."""


class Likely(NamedTuple):
    """``ends``: of what runs, Unix seconds; ``spans``: of what waits, seconds."""

    ends: Spans
    spans: Spans


def estimated(
    state: State, keys: Sequence[RunKey], dated: Iterable[Dated], lasting: tuple[Likely, Likely]
) -> dict[RunKey, Eta]:
    """The estimates of the runs ``keys``, in their order, beside the starts that are ``dated``, where one is found.

    ``state``: of the world as the plan leaves it; ``lasting``: how long runs last, for ``p50`` and for ``p90``.
    """
    (half, most), lanes, held, beside = lasting, LaneBook(state), Held.of(state), [*dated]
    asking = _asking(state, keys, lanes)
    p50 = _together(state, keys, _starts(state, asking, beside, half, lanes, held))
    p90 = p50 if most == half else _together(state, keys, _starts(state, asking, beside, most, lanes, held))
    return {
        key: Eta(p50=Time(p50[key]), p90=Time(max(p50[key], p90[key]))) for key in keys if key in p50 and key in p90
    }


def is_near(before: Eta | None, now: Eta, at: int, bucket: int) -> bool:
    """Is an estimate still to come, and did it move by less than ``bucket`` seconds? ``at``: Unix seconds."""
    if before is None or before.p50 is None or before.p90 is None or now.p50 is None or now.p90 is None:
        return False
    return before.p50 > at and abs(before.p50 - now.p50) < bucket and abs(before.p90 - now.p90) < bucket


def likely(world: Snapshot, state: State) -> tuple[Likely, Likely]:
    """How long runs last, for ``p50`` and for ``p90``: by their limit; where that is not stated, or an end is only
    expected, as runs like them lasted (`planner.forecast.durations`), else as they say themselves.
    """
    told, spans, past = _estimates(world, state), expected(world), Durations.of(ended(world))
    limits = state.limits
    half, most = (
        Likely(
            {key: _end(state, past, key, limit, told.get(key), tenths) for key, limit in limits.items()},
            {run.key: run.limit or past.quantile(run, tenths) or spans.get(run.key) for run in state.pending},
        )
        for tenths in (5, MOST)
    )
    return half, most


def _end(state: State, past: Durations, key: RunKey, limit: int | None, told: int | None, tenths: int) -> int | None:
    """When a run that runs ends, Unix seconds. ``limit``: at the latest; ``told``: as it says itself."""
    if limit is not None and told is None:
        return limit
    begun = started(state.runs[key], state.held[key]) or state.at
    lasts = past.quantile(state.runs[key], tenths, state.at - begun)
    if lasts is None and tenths == MOST and limit is not None:
        return limit  # nothing tells how far what it says may be trusted
    known = [end for end in (limit, told if lasts is None else begun + lasts) if end is not None]
    return min(known, default=None)


def _asking(state: State, keys: Iterable[RunKey], lanes: LaneBook) -> dict[RunKey, tuple[Ask, Lanes]]:
    """What each run asks, for good, and who pays; those that nobody pays anywhere are left out."""
    purses, found = state.asked.payers(state.book), dict[RunKey, tuple[Ask, Lanes]]()
    sites_for: dict[Access, frozenset[int]] = {}
    for key in keys:
        run = state.runs[key].waiting()
        purse, access = purses.of(run), run.access(state.policy.maintenance, state.at)
        if access not in sites_for:
            sites_for[access] = state.fleet.sites_for(access)
        sites, pieces = sites_for[access] & purse.sites, run.lowered().pieces()
        if pieces and sites:
            ask = Ask(purse.number, tuple(sorted(sites)), run.width_min, max(pieces), None)
            found[key] = ask, lanes.of(purse, ask.sites)
    return found


def _starts(
    state: State,
    asking: Mapping[RunKey, tuple[Ask, Lanes]],
    dated: Sequence[Dated],
    likely: Likely,
    lanes: LaneBook,
    held: Held,
) -> dict[RunKey, int]:
    """When each starts by itself, Unix seconds by run."""
    policy = state.policy.reservations
    horizon = state.at + int(policy.horizon)
    times = grid(state.at, horizon, int(policy.bucket))
    fluid = Fluid.of(state, held, likely.ends, times, lanes)
    for each in dated:
        _hold(fluid, state, each)
    found: dict[RunKey, int] = {}
    asks = ((ask._replace(span=likely.spans.get(key)), payers, key) for key, (ask, payers) in asking.items())
    for ask, alike in groupby(asks, key=itemgetter(0)):
        _, [payers, *_], keys = zip(*alike, strict=True)
        found |= zip(keys, fluid.starts(ask, payers, len(keys)), strict=False)
    return found


def _together(state: State, keys: Iterable[RunKey], found: Mapping[RunKey, int]) -> dict[RunKey, int]:
    """The same where those of a gang start together, when the last can."""
    gangs: dict[tuple[str, str], list[RunKey]] = {}
    for key in keys:
        if state.runs[key].gang:
            gangs.setdefault((key[0], state.runs[key].gang), []).append(key)
    together = dict(found)
    for members in gangs.values():
        times = [found[key] for key in members if key in found]
        for key in members:
            together.pop(key, None)
            together |= {key: max(times)} if len(times) == len(members) else {}
    return together


def _hold(fluid: Fluid, state: State, dated: Dated) -> None:
    """What a start that is dated takes, by site and by cap."""
    discount = milli(state.policy.spares.discount)
    problem = dated.moment.problem
    gpus: dict[int, int] = {}
    for piece in dated.found.pieces:
        for chunk in piece.chunks:
            site = int(state.fleet.site[chunk.node])
            gpus[site] = gpus.get(site, 0) + chunk.count
    caps: dict[int, int] = {}
    start = dated.found.start.candidate
    payers = problem.payers(problem.candidates[start]) if start >= 0 else {}
    for (active, region), payments in dated.found.paid.items():
        for envelope, count in payments.items():
            for cap, weight in problem.book.touches(problem.lane(payers[envelope], region)):
                caps[cap] = caps.get(cap, 0) + weight * count * (1000 if active else discount)
    fluid.hold(gpus, caps, dated.at, dated.end)
