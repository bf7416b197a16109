"""Statuses of Runs as the plan leaves them: what they say follows from the leases (spec §1 Run status, §9).

A Run whose status the plan does not rewrite answers for the stored one.
"""

from collections.abc import Iterator

from jobtree.api.run import RUN_CONDITIONS, RunStatus
from jobtree.check.case import Case
from jobtree.check.classes import Present
from jobtree.check.rows import Run, RunKey
from jobtree.check.shape import width
from jobtree.check.violation import Violation


def violations(case: Case, present: Present) -> Iterator[Violation]:
    """Every Run but those that are going; arrays tell of their indices elsewhere."""
    for key in case.updates:
        if key not in case.runs:
            yield _of(key, "status-agrees", "the plan writes its status, and it is not there")
    if len(case.updates) < len(case.plan.runs):
        yield Violation("unique-names", "Plan runs", "the plan writes the status of one Run twice")
    for key, run in case.runs.items():
        status = case.status_after(key)
        if run.deleting or run.array:
            continue
        if status is None:
            yield _of(key, "conditions-present", "it has no status, and the plan gives it none")
            continue
        yield from _conditions(key, status)
        if run.total:
            yield from _holding(case, key, status)
            yield from _width(case, key, run, status)
            yield from _funding(case, present, key, status)
        if key in case.starting:
            yield from _started(case, key, status)


def _of(key: RunKey, invariant: str, message: str) -> Violation:
    return Violation(invariant, f"Run {'/'.join(key)}", message)


def is_true(status: RunStatus, condition: str) -> bool:
    """Whether a condition holds."""
    return any(each.type == condition and each.status == "True" for each in status.conditions)


def _conditions(key: RunKey, status: RunStatus) -> Iterator[Violation]:
    there = sorted(each.type for each in status.conditions)
    if there != sorted(RUN_CONDITIONS):
        wanted = ", ".join(RUN_CONDITIONS)
        yield _of(key, "conditions-present", f"it has the conditions {', '.join(there) or 'none'}, not {wanted}")
    blocked = is_true(status, "Blocked") and not is_true(status, "Admitted")
    derived = next(
        (phase for phase in ("Failed", "Completed", "Running") if is_true(status, phase)),
        "Waiting" if blocked else "Pending",
    )
    if status.phase != derived:
        yield _of(key, "phase-derived", f"its phase is {status.phase}, and its conditions say {derived}")


def _holding(case: Case, key: RunKey, status: RunStatus) -> Iterator[Violation]:
    held = len(case.after(key))
    if held and status.phase in ("Completed", "Failed"):
        yield _of(key, "terminal-holds-nothing", f"it is {status.phase} and holds {held} leases")
    elif held and not is_true(status, "Admitted"):
        yield _of(key, "status-agrees", f"it holds {held} leases and is not Admitted")
    elif not held and (status.phase == "Running" or (status.phase != "Completed" and is_true(status, "Admitted"))):
        yield _of(key, "running-has-width", f"it is {status.phase}, Admitted or Running, and holds nothing")


def _width(case: Case, key: RunKey, run: Run, status: RunStatus) -> Iterator[Violation]:
    held = width(case.after(key))
    if status.width is None:
        if held:
            yield _of(key, "status-agrees", f"it holds {held} GPUs, and its status has no width")
        return
    desired = run.total if run.desired is None else run.desired
    wanted = {
        "allocated": (status.width.allocated, held),
        "min": (status.width.min, run.total if run.min_total is None else run.min_total),
        "max": (status.width.max, run.total if run.max_total is None else run.max_total),
        "desired": (status.width.desired, desired),
    }
    if status.phase not in ("Completed", "Failed"):
        wanted["pending"] = (status.width.pending, max(0, desired - held))
    for name, (given, true) in wanted.items():
        if given != true:
            yield _of(key, "status-agrees", f"its status says width.{name} {given}, and it is {true}")


def _funding(case: Case, present: Present, key: RunKey, status: RunStatus) -> Iterator[Violation]:
    active = [lease for lease in case.after(key) if lease.active]
    held = dict.fromkeys(("owned", "shared", "borrowed", "unfunded"), 0)
    lenders = set()
    for lease in active:
        name = present.classes[lease.key]
        held[name] += lease.gpus
        if name == "borrowed" and lease.budget is not None:
            lenders.add(case.owner_of.get(lease.budget, lease.owner))
    if status.funding is None:
        if active:
            yield _of(key, "classes-partition-width", f"it holds {width(active)} GPUs, and its status tells no classes")
        return
    said = {
        "owned": status.funding.owned_gpus,
        "shared": status.funding.shared_gpus,
        "borrowed": status.funding.borrowed_gpus,
        "unfunded": status.funding.unfunded_gpus,
    }
    if said != held:
        yield _of(key, "classes-partition-width", f"its status says {_words(said)}, and it holds {_words(held)}")
    if sorted(status.funding.lenders) != sorted(lenders):
        sentence = f"its status names the lenders {', '.join(status.funding.lenders) or 'none'}, and they are"
        yield _of(key, "status-agrees", f"{sentence} {', '.join(sorted(lenders)) or 'none'}")


def _words(gpus: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in gpus.items())


def _started(case: Case, key: RunKey, status: RunStatus) -> Iterator[Violation]:
    if status.started != case.at:
        yield _of(key, "status-agrees", f"it starts at {case.at}, and its status says {status.started}")
    if status.time_limit != case.limit(key):
        sentence = f"its enforced time limit is {case.limit(key)}, and its status says {status.time_limit}"
        yield _of(key, "status-agrees", sentence)
