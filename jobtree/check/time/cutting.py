"""Cuts, again: for whom, of whom, in which order, and by whose draw (spec §5, §6).

A lease is cut for a promise that is due and whose run starts in this very plan. Each kind of cut has what it may take;
a draw is recomputed from the secret and the pools that the plan publishes; what is cut lies where its cause starts.
"""

from collections.abc import Iterator

import msgspec

from jobtree.api.kinds.plan import Draw
from jobtree.api.values.counted import counted
from jobtree.check.case.case import Case
from jobtree.check.case.rows import Held, Reservation, RunKey
from jobtree.check.case.violation import Violation
from jobtree.check.time.lottery import recompute
from jobtree.world.plan import Closure

DRAWN = "Lottery"


def violations(case: Case) -> Iterator[Violation]:
    """What is wrong with each cut, and with what was drawn."""
    cut = {key: each for key, each in case.closing.items() if each.made_room_for and key in case.leases}
    if not cut and case.plan.lottery is None:
        return
    promises = {f"{each.namespace}/{each.name}": each for each in case.rows.reservations}
    for key, closure in cut.items():
        promise = promises.get(closure.made_room_for)
        waits = _pods_stay(case, closure.made_room_for)
        wrong = _cause(case, promise, waits=waits) or _rule(case, case.leases[key], closure, promise)
        if wrong:
            yield Violation.of_lease("cut-justified", key, f"it is cut ({closure.reason}), and {wrong}")
    yield from _lottery(case, promises)
    most = case.policy.cuts.max_gpus_per_cycle
    gpus = sum(case.leases[key].gpus for key in cut)
    if most is not None and gpus > most:
        yield Violation("cut-justified", "Policy default", f"the plan cuts {counted(gpus, 'GPU')}, and may cut {most}")


def may_start_unfunded(case: Case, key: RunKey) -> bool:
    """Is a run promised a start by now that it may make without money (Policy ``onBudgetShortfall``)?"""
    if case.policy.reservations.on_budget_shortfall != "startUnfunded":
        return False
    return any(each.run_key == key for each in _due(case))


def _due(case: Case) -> Iterator[Reservation]:
    """Promises to be kept by now."""
    return (each for each in case.rows.reservations if each.stands and each.start <= case.at)


def _pods_stay(case: Case, reservation: str) -> bool:
    """Do pods still run on some lease that is cut for it? Then its run starts when they are gone."""
    cut = {key for key, each in case.closing.items() if each.made_room_for == reservation}
    there = {(pod.namespace, pod.run, pod.node) for pod in case.pods if not pod.ended}
    leases = (case.leases[key] for key in cut if key in case.leases)
    return any((lease.namespace, lease.run, lease.node) in there for lease in leases)


def _cause(case: Case, promise: Reservation | None, *, waits: bool) -> str:
    """Why no cut is for this promise; empty where some may be."""
    if promise is None or not promise.stands:
        return "no such promise stands"
    if promise.start > case.at:
        return f"its promise is due at {promise.start}"
    return "" if waits or promise.run_key in case.starting else "the run of its promise does not start"


def _rule(case: Case, lease: Held, closure: Closure, promise: Reservation | None) -> str:
    """What a kind of cut may not take."""
    run, key = case.run_of(lease.run_key), lease.run_key
    if run is None or promise is None:
        return "its run is gone"
    kept = case.held_by.get(key, [])
    if not _pods_stay(case, closure.made_room_for) and not _is_used(case, key, promise):
        return "nothing starts where it lies"
    if closure.reason == "DropSpare" and lease.role == "Active":
        return "it is no spare"
    if closure.reason == "ReclaimUnfunded" and lease.active and not case.is_unfunded(lease):
        return "it is funded"
    if closure.reason in ("Shrink", "ReclaimUnfunded") and any(each.group == lease.group for each in kept):
        return "a part of its group stays"
    if closure.reason == "Shrink":
        rest = [each for each in case.open_by[key] if each.active and not _is_cut_as(case, each, "Shrink")]
        left = sum(each.gpus for each in rest)
        return "" if left >= run.least else f"its run falls below its least width of {run.least}"
    return _draw_rule(case, lease, closure, promise) if closure.reason == DRAWN else ""


def _draw_rule(case: Case, lease: Held, closure: Closure, promise: Reservation) -> str:
    """What the lottery may not take."""
    run, started = case.run_of(lease.run_key), case.started(lease.run_key)
    if run is not None and run.owner in _owners(case, promise.run_key):
        return f"its run is of {run.owner}, as the one that starts"
    if started is None or started + int(case.policy.lottery.term) > case.at:
        return "its run is protected"
    if case.held_by.get(lease.run_key):
        return "a part of its run stays"
    draws = () if case.plan.lottery is None else case.plan.lottery.draws
    picks = next((each.picks for each in draws if each.reservation == closure.made_room_for), ())
    number = -1 if closure.draw is None else closure.draw
    drawn = picks[number] if 0 <= number < len(picks) else ""
    return "" if drawn.rpartition("#")[0] == "/".join(lease.run_key) else "no draw took its run"


def _is_cut_as(case: Case, lease: Held, reason: str) -> bool:
    closure = case.closing.get(lease.key)
    return closure is not None and closure.reason == reason


def _is_used(case: Case, key: RunKey, promise: Reservation) -> bool:
    """Does its run, one of its gang, or one promised a start by now, start on a node where something of it goes?"""
    due = {*_mates(case, promise.run_key), *(each.run_key for each in _due(case))}
    nodes = {lease.node for run in due for lease in case.new_by.get(run, ())}
    return any(lease.key in case.closing and lease.node in nodes for lease in case.open_by[key])


def _mates(case: Case, key: RunKey) -> set[RunKey]:
    """A run, and those of its gang that start with it."""
    run = case.run_of(key)
    gang = None if run is None else run.gang
    return {key} if gang is None else {key, *(each for each in case.starting if _is_of(case, each, key[0], gang))}


def _is_of(case: Case, key: RunKey, namespace: str, gang: str) -> bool:
    run = case.run_of(key)
    return run is not None and (key[0], run.gang) == (namespace, gang)


def _owners(case: Case, key: RunKey) -> set[str]:
    """Whose runs start together for a promise."""
    return {run.owner for each in _mates(case, key) if (run := case.run_of(each)) is not None}


def _lottery(case: Case, promises: dict[str, Reservation]) -> Iterator[Violation]:
    """The draws again: seeds, words and picks; who was in the pools."""
    lottery = case.plan.lottery
    if lottery is None:
        return
    subject = f"Plan {case.plan.cycle}"
    for step in recompute(msgspec.structs.replace(lottery, position=0), lottery.secret):
        if not step.holds:
            message = f"{step.what} was {step.published}, and is {step.computed} when it is recomputed"
            yield Violation("draws-recompute", subject, message)
    cut = {each.made_room_for for each in case.plan.closures if each.reason == DRAWN}
    for draw in lottery.draws:
        promise = promises.get(draw.reservation)
        if draw.reservation not in cut:
            yield Violation("draws-recompute", subject, f"it draws for {draw.reservation} and cuts nobody for it")
        elif promise is None or (draw.uid, int(draw.earliest_start)) != (promise.uid, promise.first_start):
            yield Violation("draws-recompute", subject, f"it draws for {draw.reservation} by another uid or start")
        else:
            yield from _pools(case, draw, promise)


def _pools(case: Case, draw: Draw, promise: Reservation) -> Iterator[Violation]:
    """Tokens are groups that run and may be drawn; each pick leaves its pool."""
    waiting, term = _owners(case, promise.run_key), int(case.policy.lottery.term)
    picked: set[str] = set()
    for pool, pick in zip(draw.pools, draw.picks, strict=False):
        tokens = {token: each.owner for each in pool for token in each.tokens}
        for token, owner in tokens.items():
            name, _, group = token.rpartition("#")
            namespace, _, run_name = name.partition("/")
            run, started = case.run_of((namespace, run_name)), case.started((namespace, run_name))
            held = {str(lease.group) for lease in case.open_by.get((namespace, run_name), ()) if lease.active}
            fair = run is not None and run.owner == owner and bool(waiting) and run.owner not in waiting
            if not fair or group not in held or started is None or started + term > case.at or token in picked:
                yield Violation("draws-recompute", f"Plan {case.plan.cycle}", f"{token} may not be drawn")
        picked.add(pick)
