"""Which running claims give way beside the payments of a relaxation: of a large master, or of who pays afterwards.

In the relaxation a claim may go in part, and leave part of its quota. Parts that stay there stay, and so do those that
mostly stay, if that loses little. The others are decided a few at a time, each time followed by a relaxation. The pass
of spec §3.5 says of the rest who goes beside what nearer starts pay.
"""

from typing import Final

from planner.relaxed import Found, Relaxed
from planner.solver import NOISE, Floats
from policies.model import INF
from policies.recall_held import Held

STAY: Final = 0.5
"""Parts that go by less than this are made to stay together."""
LITTLE: Final = 2e-4
"""Part of the bound that this may lose."""
ALONE: Final = 1e-5
"""Part of the bound that one part may lose before it is tried the other way round."""
MANY: Final = 16
"""Most parts decided at once."""
STEPS: Final = 1_500_000
"""Columns of all relaxations of a master in which parts are decided."""
HALF: Final = 0.5


def in_parts(held: Held, point: Floats) -> dict[int, float]:
    """Parts of claims that a point decides nothing about: how far it is from a decision, at most 0.5.

    A part that goes needs a limit that is full without it, or to follow one that goes.
    """
    found: dict[int, float] = {}
    for i, column in held.stays.items():
        stays = float(point[column])
        if NOISE < stays < 1 - NOISE:
            found[i] = min(stays, 1 - stays)
        elif stays <= NOISE and (reasons := held.reasons.get(i)):
            leader = _leader(held, i)
            fullest = max(float(point[reason.full]) for reason in reasons)
            if fullest < 1 - NOISE and (leader is None or point[leader] > NOISE):
                found[i] = min(HALF, 1 - fullest)
    return found


def _leader(held: Held, i: int) -> int | None:
    """The column of the group of the same claim before this one."""
    return held.stays.get(i - 1) if held.problem.running.parts[i].follows else None


def settle(relaxed: Relaxed, held: Held, point: Floats, bound: float, steps: int = STEPS) -> Found:
    """Fix all columns of recall, from the relaxation's best ``point``.

    ``steps``: columns of all relaxations in which parts are decided.
    """
    kept = {column for column in held.stays.values() if point[column] > 1 - NOISE}
    best: Floats | None = point
    if in_parts(held, point):
        best, value = relaxed.fix(dict.fromkeys(sorted(kept), 1.0))
        more = {column for column in held.stays.values() if best is not None and best[column] > 1 - STAY} - kept
        found = relaxed.fix(dict.fromkeys(sorted(more), 1.0))
        if found[1] >= value - LITTLE * bound:
            best, value = found
        else:
            relaxed.undo()
        if best is not None:
            best = _decide(relaxed, held, best, value, ALONE * bound, steps // len(best))
            kept = {column for column in held.stays.values() if best[column] > 1 - NOISE}
    found = _by_pass(relaxed, held, best, kept)
    if found[0] is None:
        relaxed.reset(held.columns)
        found = _by_pass(relaxed, held, point, set())
    if found[0] is None:
        return found
    return _for_whole_gpus(relaxed, held, found[0])


def _for_whole_gpus(relaxed: Relaxed, held: Held, point: Floats) -> Found:
    """Half a GPU that is near is a spare; where no spare is, payment finds a whole one or nothing."""
    rows = held.whole_rows(point.tolist())
    relaxed.raise_rows(rows)
    found = relaxed.best()
    if found[0] is None:
        relaxed.raise_rows(dict.fromkeys(rows, 0.0))
        found = relaxed.best()
    return found


def _decide(relaxed: Relaxed, held: Held, point: Floats, value: float, drop: float, steps: int) -> Floats:
    """Let parts stay or go, the most decided first, several at once; at most ``steps`` relaxations.

    ``drop``: what a part may lose. Where several lose more, fewer are tried; where one does, the other way round. What
    can neither stay nor go beside what is decided is left to the pass.
    """
    best: Floats = point
    many, left = MANY, set[int]()
    while steps > 0:
        loose = {i: off for i, off in in_parts(held, best).items() if i not in left}
        if not loose:
            break
        order = sorted(loose, key=lambda part: (loose[part], part))[:many]
        found = relaxed.fix({c: side for i in order for c, side in _side(held, best, i, _stays(held, best, i)).items()})
        steps -= 1
        if found[1] < value - drop * len(order):
            relaxed.undo()
            if len(order) > 1:
                many = max(1, len(order) // 4)
                continue
            found = _either(relaxed, held, best, order[0], found)
            steps -= 1
        if found[0] is None:
            left.add(order[0])
            continue
        best, value = found[0], found[1]
        many = min(MANY, 2 * many)
    return best


def _either(relaxed: Relaxed, held: Held, point: Floats, i: int, nearer: Found) -> Found:
    """The better side of a part that loses much on its nearer one; without a point, and undone, where none has any."""
    stays = _stays(held, point, i)
    other = relaxed.fix(_side(held, point, i, not stays))
    if other[0] is not None and other[1] >= nearer[1]:
        return other
    relaxed.undo()
    return nearer if nearer[0] is None else relaxed.fix(_side(held, point, i, stays))


def _by_pass(relaxed: Relaxed, held: Held, point: Floats | None, kept: set[int]) -> Found:
    """Who goes beside the payments of a point, by the pass.

    What stays takes room from other starts, which may leave others of these claims a reason to stay: so what stays is
    fixed again and again, and who goes in the end.
    """
    best = point
    while best is not None:
        settled = held.settled(best.tolist(), kept)
        now = {column for column in held.stays.values() if settled[column]}
        if now <= kept:
            return relaxed.fix(settled | dict.fromkeys(held.idle(settled), 0.0))
        kept = kept | now
        best, _ = relaxed.fix(dict.fromkeys(sorted(kept), 1.0))
    return None, -INF


def _stays(held: Held, point: Floats, i: int) -> bool:
    """Does more than half of a part stay?"""
    return float(point[held.stays[i]]) > HALF


def _side(held: Held, point: Floats, i: int, stays: bool) -> dict[int, float]:
    """A part stays, and has no reason to go; or goes, after its leader or for the limit that is fullest."""
    reasons = held.reasons.get(i, [])
    if stays:
        return {held.stays[i]: 1.0} | dict.fromkeys((reason.full for reason in reasons), 0.0)
    leader = _leader(held, i)
    follows = leader is not None and point[leader] <= NOISE
    fullest = None if follows else max(reasons, key=lambda reason: (point[reason.full], -reason.full), default=None)
    return {held.stays[i]: 0.0} | ({fullest.full: 1.0} if fullest else {})
