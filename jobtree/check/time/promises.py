"""Promises, again: what a Reservation says is so, and its time moves later only for a recorded cause (spec §5)."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from jobtree.api.kinds.reservation import AWAITS, Reservation, ReservationStatus
from jobtree.api.kinds.run import OVER
from jobtree.check.case.case import Case
from jobtree.check.case.rows import RunKey
from jobtree.check.case.violation import Violation
from jobtree.world.tables import rows

RECLAIMED: Final = "ReclaimUnfunded"
REMEMBERED: Final = 20
"""Most moves of a promise that its history has (spec §1)."""


class Promise(NamedTuple):
    """A Reservation. ``start``: as it stands, Unix seconds; ``nodes``: where it is meant to start."""

    name: str
    run: RunKey
    start: int
    nodes: tuple[str, ...]
    status: ReservationStatus

    @property
    def stands(self) -> bool:
        """Whether it is still to be kept."""
        return self.status.stands

    @property
    def subject(self) -> str:
        """What violations call it."""
        return f"Reservation {self.run[0]}/{self.name}"


def violations(case: Case) -> Iterator[Violation]:
    """What the plan writes of promises, and what it leaves of them."""
    before = _before(case)
    found = after(case)
    yield from _new(case, before)
    yield from _kept(case, before, found)
    yield from _states(case, before, found)


def _before(case: Case) -> Mapping[tuple[str, str], Promise]:
    return {
        (each.namespace, each.name): Promise(
            each.name, each.run_key, each.start, each.nodes, rows.reservation_status(each.status)
        )
        for each in case.rows.reservations
    }


def after(case: Case) -> list[Promise]:
    """Promises that there are once the plan is carried out."""
    gone = {(each.namespace, each.name) for each in case.plan.lapsed}
    moved = {(each.namespace, each.name): each.status for each in case.plan.promises}
    found = []
    for key, promise in _before(case).items():
        status = moved.get(key)
        if key not in gone:
            found.append(promise if status is None else _as(promise, status))
    for each in case.plan.reservations:
        run = (each.namespace, each.spec.run_ref.run_name)
        new = Promise(each.name, run, int(each.spec.earliest_start), each.spec.intended_slice.nodes, each.status)
        found.append(_as(new, each.status))
    return found


def _as(promise: Promise, status: ReservationStatus) -> Promise:
    start = promise.start if status.earliest_start is None else int(status.earliest_start)
    nodes = promise.nodes if status.intended_slice is None else status.intended_slice.nodes
    return Promise(promise.name, promise.run, start, nodes, status)


def _new(case: Case, before: Mapping[tuple[str, str], Promise]) -> Iterator[Violation]:
    for each in case.plan.reservations:
        run = case.run_of((each.namespace, each.spec.run_ref.run_name))
        subject = f"Reservation {each.namespace}/{each.name}"
        wanted = f"{each.spec.run_ref.run_name}-{case.plan.cycle.lower()}"
        if each.name != wanted:
            yield Violation("promise-truthful", subject, f"a promise of this cycle is called {wanted}")
        if (each.namespace, each.name) in before:
            yield Violation("unique-names", subject, "there is a promise of that name already")
        if run is None or case.after(run.key) or run.outcome is not None or run.state != "Active":
            yield Violation("promise-truthful", subject, "its run does not wait")
        awaits = int(each.spec.earliest_start) == case.at and _awaits_pods(case, each)
        if int(each.spec.earliest_start) <= case.at and not awaits:
            yield Violation("promise-truthful", subject, f"{each.spec.earliest_start} is not to come")
        missing = [node for node in each.spec.intended_slice.nodes if node not in case.nodes]
        if missing or not each.spec.intended_slice.nodes:
            yield Violation("promise-truthful", subject, f"nodes {missing or 'none'} are not there")


def _awaits_pods(case: Case, promise: Reservation) -> bool:
    """Does the plan reclaim opportunistic work on its nodes whose pods are still there? Then its slots are held."""
    pods = {(each.namespace, each.run, each.node) for each in case.pods if not each.ended}
    gone = [case.leases[key] for key, each in case.closing.items() if each.reason == RECLAIMED and key in case.leases]
    nodes = [each.node for each in gone if (each.namespace, each.run, each.node) in pods]
    return promise.status.reason == AWAITS and not {*nodes}.isdisjoint(promise.spec.intended_slice.nodes)


def _kept(case: Case, before: Mapping[tuple[str, str], Promise], after: list[Promise]) -> Iterator[Violation]:
    """No promised time moves later without a recorded cause; what was recorded stays."""
    for promise in after:
        old = before.get((promise.run[0], promise.name))
        if old is None:
            continue
        told, said = old.status.history, promise.status.history
        fresh = next((n for n in range(len(said) + 1) if (*told, *said[len(said) - n :])[-REMEMBERED:] == said), None)
        added = said[len(said) - (fresh or 0) :]
        if fresh is None or any(int(move.at) != case.at or not move.cause for move in added):
            yield Violation("promise-kept", promise.subject, "its history was rewritten")
        later = promise.stands and promise.start > old.start
        if later and not any(int(move.earliest_start or 0) == promise.start for move in added):
            yield Violation("promise-kept", promise.subject, f"{promise.start - old.start} s later, for no cause")


def _states(case: Case, before: Mapping[tuple[str, str], Promise], after: list[Promise]) -> Iterator[Violation]:
    for each in case.plan.promises:
        if (each.namespace, each.name) not in before:
            subject = f"Reservation {each.namespace}/{each.name}"
            yield Violation("promise-state", subject, "the plan writes its status, and it is not there")
    for gone in case.plan.lapsed:
        old = before.get((gone.namespace, gone.name))
        if old is None or old.stands:
            yield Violation("promise-state", f"Reservation {gone.namespace}/{gone.name}", "it goes, and still stands")
    for promise in after:
        old = before.get((promise.run[0], promise.name))
        if old is not None and not old.stands:
            if promise.status != old.status:
                yield Violation("promise-state", promise.subject, f"it was {old.status.state}, which is final")
        elif (wrong := _state(case, promise)) is not None:
            yield Violation("promise-state", promise.subject, f"it is {promise.status.state}, and {wrong}")
    for run, times in sorted(Counter(promise.run for promise in after if promise.stands).items()):
        if times > 1:
            yield Violation.of_run("promise-state", run, f"{times} promises stand for it")
    held = sum(promise.stands for promise in after)
    if case.plan.reservations and held > case.policy.reservations.max_held:
        yield Violation("promise-state", f"Plan {case.plan.cycle}", f"{held} promises stand, more than maxHeld")


def _state(case: Case, promise: Promise) -> str | None:
    """What its state should be and is not; None where it is right."""
    run = case.run_of(promise.run)
    state = promise.status.state
    if run is None or run.outcome is not None or case.phase_after(promise.run) in OVER:
        return None if state == "Failed" else "its run is gone or over"
    if promise.run in case.starting:
        return None if state == "Activated" else "its run starts"
    if case.after(promise.run):
        return None if state in ("Released", "Failed") else "its run runs already"
    return "its run waits" if state in ("Activated", "Released") and not promise.stands else None
