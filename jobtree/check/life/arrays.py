"""Arrays of runs: how many indices run at once, and what the array's own status says (spec §1 Run.array)."""

from collections.abc import Iterator

from jobtree.api.values.counted import counted
from jobtree.check.case.case import Case
from jobtree.check.case.rows import Array
from jobtree.check.case.violation import Violation

_OVER = ("Completed", "Failed")


def violations(case: Case) -> Iterator[Violation]:
    """Of every array that is not over; that its indices are its own and not over is said of any run."""
    for array in case.rows.arrays:
        run = case.runs[array.key]
        if run.outcome is None:
            yield from _parallel(case, array)
            yield from _phase(case, array)


def _runs(case: Case, array: Array) -> list[tuple[str, str]]:
    """Indices that run once the plan is carried out."""
    return [key for key in array.members if case.after(key) or case.phase_after(key) == "Running"]


def _parallel(case: Case, array: Array) -> Iterator[Violation]:
    most, running = array.max_parallel, len(_runs(case, array))
    starts = [key for key in array.members if key in case.starting or case.begins(key)]
    if most is not None and running > most and starts:
        sentence = f"{counted(running, 'index', 'indices')} of it would run, and its maxParallel is {most}"
        yield Violation.of_run("array-parallel", array.key, sentence)


def _phase(case: Case, array: Array) -> Iterator[Violation]:
    """It is Completed when all indices are, Failed when all are over and some are not, and runs when some run."""
    run, phase = case.runs[array.key], case.phase_after(array.key)
    ends = [case.phase_after(key) for key in array.members if case.runs[key].outcome is None]
    completed, failed = (
        had + ends.count(kind) for had, kind in zip((array.completed, array.failed), _OVER, strict=True)
    )
    if run.state == "Cancelled":
        wanted = "Failed"
    elif completed + failed == array.size:
        wanted = "Failed" if failed else "Completed"
    else:
        wanted = "Running" if _runs(case, array) else ""
    if (wanted and phase != wanted) or (not wanted and phase in (*_OVER, "Running")):
        said = f"{completed} of {array.size} indices are Completed, {failed} Failed, {len(_runs(case, array))} run"
        yield Violation.of_run("array-agrees", array.key, f"{said}, and it would be {phase}")
