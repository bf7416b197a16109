"""What becomes of a run whose leases end (spec §6, §7): Completed, Failed, or waiting again."""

from collections.abc import Iterator

from jobtree.check.case.case import Case
from jobtree.check.case.rows import Run, RunKey
from jobtree.check.case.violation import Violation

FINAL = {"Completed": "Completed", "Failed": "Failed", "TimeLimit": "Failed", "Cancelled": "Failed"}
"""Reasons of closure that decide the run's fate."""
INTERRUPTING = {"NodeFailure", "ReclaimUnfunded", "ReclaimedBySpare", "Lottery"}
"""Those after which ``requeue`` decides; also after Failed, where no pod failed and the gang only lacks something."""


def violations(case: Case) -> Iterator[Violation]:
    """Outcomes are final, and follow from what ended; those of arrays as `arrays` says."""
    reasons: dict[RunKey, set[str]] = {}
    for key, closure in case.closing.items():
        if key in case.leases:
            reasons.setdefault(case.leases[key].run_key, set()).add(closure.reason)
    for key, run in case.runs.items():
        phase = case.phase_after(key)
        if run.outcome is not None and phase != run.outcome:
            yield _of(key, f"it is {run.outcome} for good, and would be {phase}")
        ended = reasons.get(key)
        if ended and not case.after(key) and run.outcome is None:
            yield from _fate(case, key, run, ended, phase)
        elif run.outcome is None and (started := case.cpu_started(key)) is not None:
            yield from _cpu_fate(case, run, started, phase)
        elif run.outcome is None and phase == "Completed" and not run.array and not _may_complete(case, run):
            yield _of(key, "it would be Completed, and nothing says that it is")
        elif run.outcome is None and phase == "Failed" and not run.array and not _may_fail(case, run):
            yield _of(key, "it would be Failed, and nothing says that it is")
        elif run.follow and phase not in FINAL.values() and _must_fail(case, run):
            yield _of(key, f"a run that it follows failed, or was deleted, and it would be {phase}")


def _fate(case: Case, key: RunKey, run: Run, reasons: set[str], phase: str | None) -> Iterator[Violation]:
    words = ", ".join(sorted(reasons))
    returns = case.pods_displaced(key) or case.told.lacking.get(key, False)
    lacking = "Failed" in reasons and not case.pods_failed(key) and returns
    interrupted = lacking or not reasons.isdisjoint(INTERRUPTING)
    decided = {FINAL[reason] for reason in reasons if reason in FINAL and not (lacking and reason == "Failed")}
    if decided and phase not in decided:
        yield _of(key, f"its leases end as {words}, and it would be {phase}")
    if not decided and interrupted and (phase == "Failed") == run.requeue:
        wanted = "waits again" if run.requeue else "has Failed"
        yield _of(key, f"its leases end as {words}, so with requeue {run.requeue} it {wanted}, and it would be {phase}")
    if not decided and phase == "Completed":
        yield _of(key, f"its leases end as {words}, and it would be Completed")


def _cpu_fate(case: Case, run: Run, started: int, phase: str | None) -> Iterator[Violation]:
    """A CPU run that runs holds no lease whose end would tell: it ends by a mark, its limit, its owner or its pods."""
    limit = case.limit(run.key)
    timed_out = limit is not None and started + limit <= case.at
    said = case.told.said.get(run.key)
    failed = (
        timed_out
        or run.state == "Cancelled"
        or (said is not None and (said.failed or (said.stuck and not run.requeue)))
    )
    ends = [name for name, is_so in (("Completed", _may_complete(case, run)), ("Failed", failed)) if is_so]
    if phase in FINAL.values() and phase not in ends:
        yield _of(run.key, f"it would be {phase}, and nothing says that it is")
    elif ends and phase not in ends and not run.deleting:
        yield _of(run.key, f"it is {' or '.join(ends)}, and would be {phase}")


def _may_complete(case: Case, run: Run) -> bool:
    marked = run.completed_at is not None and run.completed_at <= case.at
    return marked or case.pods_succeeded(run.key)


def _may_fail(case: Case, run: Run) -> bool:
    """Whether a run that holds nothing was cancelled, or goes with an upstream."""
    return run.state == "Cancelled" or bool(case.open_by.get(run.key)) or _goes_with_upstream(case, run)


def _must_fail(case: Case, run: Run) -> bool:
    """Whether nothing keeps a run that never started from going with an upstream; indices of arrays wait on."""
    before = case.stored(run.key)
    never = (before is None or before.started is None) and not case.after(run.key) and not case.may_be_unread(run)
    live = run.state == "Active" and not run.deleting and not run.array and run.key not in case.rows.indices
    return never and live and _goes_with_upstream(case, run)


def _goes_with_upstream(case: Case, run: Run) -> bool:
    """Whether an upstream Failed, or was deleted, and the run waits no longer for a good one in its place."""
    if not any(_has_failed(case, (run.namespace, name)) for name in run.follow):
        return False
    before = case.stored(run.key)
    told = None if before is None else before.follow_deadline
    until = case.at + (run.upstream_grace or 0) if told is None else told
    return run.on_upstream_failure == "fail" or until <= case.at


def _has_failed(case: Case, key: RunKey) -> bool:
    """Whether an upstream Failed, or was deleted after it held something and before it Completed."""
    upstream, phase = case.runs.get(key), case.phase_after(key)
    if upstream is not None and (not upstream.deleting or phase in FINAL.values()):
        return phase == "Failed"
    return ("Run", *key) not in case.quarantined and key in case.unfinished


def _of(key: RunKey, message: str) -> Violation:
    return Violation.of_run("outcome-follows", key, message)
