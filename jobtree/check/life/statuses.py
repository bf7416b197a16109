"""Statuses of Runs as the plan leaves them: what they say follows from the leases (spec §1 Run status, §9).

A Run whose status the plan does not rewrite answers for the stored one.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from jobtree.api.kinds.run import OVER, RUN_CONDITIONS, RunStatus
from jobtree.api.values.counted import counted
from jobtree.check.case.case import Case
from jobtree.check.case.rows import Held, Run, RunKey
from jobtree.check.case.violation import Violation
from jobtree.check.life.shape import width
from jobtree.check.money.classes import Present

_CONDITIONS = tuple(sorted(RUN_CONDITIONS))
_CLASSES = ("owned", "shared", "borrowed", "unfunded")


def violations(case: Case, present: Present) -> Iterator[Violation]:
    """Every Run but those that are going; of arrays `arrays` tells."""
    for key in case.updates:
        if key not in case.runs:
            yield Violation.of_run("status-agrees", key, "the plan writes its status, and it is not there")
    if len(case.updates) < len(case.plan.runs):
        yield Violation("unique-names", "Plan runs", "the plan writes the status of one Run twice")
    for key, run in case.runs.items():
        status = case.status_after(key)
        finished = run.outcome is not None and key not in case.updates
        if run.deleting or run.array or (finished and key not in case.open_by):
            continue
        if status is None:
            yield Violation.of_run("conditions-present", key, "it has no status, and the plan gives it none")
            continue
        if key in case.rows.indices and key not in case.updates:  # its array's status keeps the phase alone
            if run.total and not case.stands(run):
                admitted = frozenset({"Admitted"} if status.phase == "Running" else ())
                yield from _holding(key, len(case.after(key)), status, admitted)
            continue
        told = _told(tuple((each.type, each.status) for each in status.conditions))
        yield from _conditions(key, status, told)
        if run.total and not case.stands(run):
            leases = case.after(key)
            yield from _holding(key, len(leases), status, told.true)
            yield from _width(key, run, width(leases), status)
            yield from _funding(present, key, leases, status)
        if key in case.starting:
            yield from _started(case, key, status)


class _Told(NamedTuple):
    """What conditions say: the types that are there, sorted, those that are True, and the phase that follows."""

    there: tuple[str, ...]
    true: frozenset[str]
    phase: str


@lru_cache(maxsize=1024)  # a fleet of runs tells one of a handful of stories
def _told(conditions: tuple[tuple[str, str], ...]) -> _Told:
    true = frozenset(name for name, state in conditions if state == "True")
    blocked = "Blocked" in true and "Admitted" not in true
    derived = next(
        (phase for phase in ("Failed", "Completed", "Running") if phase in true),
        "Waiting" if blocked else "Pending",
    )
    return _Told(tuple(sorted(name for name, _ in conditions)), true, derived)


def _conditions(key: RunKey, status: RunStatus, told: _Told) -> Iterator[Violation]:
    if told.there != _CONDITIONS:
        wanted = ", ".join(RUN_CONDITIONS)
        yield Violation.of_run(
            "conditions-present", key, f"it has the conditions {', '.join(told.there) or 'none'}, not {wanted}"
        )
    if status.phase != told.phase:
        yield Violation.of_run(
            "phase-derived", key, f"its phase is {status.phase}, and its conditions say {told.phase}"
        )


def _holding(key: RunKey, held: int, status: RunStatus, true: frozenset[str]) -> Iterator[Violation]:
    if held and status.phase in OVER:
        yield Violation.of_run(
            "terminal-holds-nothing", key, f"it is {status.phase} and holds {counted(held, 'lease')}"
        )
    elif held and "Admitted" not in true:
        yield Violation.of_run("status-agrees", key, f"it holds {counted(held, 'lease')} and is not Admitted")
    elif not held and (status.phase == "Running" or (status.phase != "Completed" and "Admitted" in true)):
        yield Violation.of_run(
            "running-has-width", key, f"it is {status.phase}, Admitted or Running, and holds nothing"
        )


def _width(key: RunKey, run: Run, held: int, status: RunStatus) -> Iterator[Violation]:
    if status.width is None:
        if held:
            yield Violation.of_run(
                "status-agrees", key, f"it holds {counted(held, 'GPU')}, and its status has no width"
            )
        return
    told = status.width
    desired = run.total if run.desired is None else run.desired
    given = (told.allocated, told.min, told.max, told.desired, told.pending)
    true = (
        held,
        run.least,
        run.total if run.max_total is None else run.max_total,
        desired,
        max(0, desired - held) if held else told.pending,
    )
    if given != true:
        for name, one, other in zip(("allocated", "min", "max", "desired", "pending"), given, true, strict=True):
            if one != other:
                yield Violation.of_run("status-agrees", key, f"its status says width.{name} {one}, and it is {other}")


def _funding(present: Present, key: RunKey, leases: list[Held], status: RunStatus) -> Iterator[Violation]:
    """Classes of the Active GPUs; lenders of the spares too, which are lent as well."""
    if status.funding is None:
        if any(lease.active for lease in leases):
            yield Violation.of_run(
                "classes-partition-width",
                key,
                f"it holds {counted(width(leases), 'GPU')}, and its status tells no classes",
            )
        return
    held = dict.fromkeys(_CLASSES, 0)
    lenders = set()
    for lease in leases:
        name = present.classes[lease.key]
        if lease.active:
            held[name] += lease.gpus
        if name == "borrowed":
            lenders.add(lease.owner)
    told = status.funding
    said = (told.owned_gpus, told.shared_gpus, told.borrowed_gpus, told.unfunded_gpus)
    if said != tuple(held.values()):
        sentence = f"its status says {_words(said)}, and it holds {_words(held.values())}"
        yield Violation.of_run("classes-partition-width", key, sentence)
    if len(told.lenders) != len(lenders) or set(told.lenders) != lenders:
        sentence = f"its status names the lenders {', '.join(told.lenders) or 'none'}, and they are"
        yield Violation.of_run("status-agrees", key, f"{sentence} {', '.join(sorted(lenders)) or 'none'}")


def _words(gpus: Iterable[int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in zip(_CLASSES, gpus, strict=True))


def _started(case: Case, key: RunKey, status: RunStatus) -> Iterator[Violation]:
    if status.started != case.at:
        yield Violation.of_run("status-agrees", key, f"it starts at {case.at}, and its status says {status.started}")
    if status.time_limit != case.limit(key):
        sentence = f"its enforced time limit is {case.limit(key)}, and its status says {status.time_limit}"
        yield Violation.of_run("status-agrees", key, sentence)
