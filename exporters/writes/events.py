"""Kubernetes Events on Runs: one for every change of fate (spec §12).

They are for people who look (`kubectl describe`, `kubectl get events`): the server forgets them after an hour, and
nothing reads them. Names are made of the run, the cycle and the reason, and they come before the statuses that they
tell of, so a cycle that was cut off and completed says everything, and nothing twice.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from jobtree.api import API_VERSION, Time
from jobtree.api.kinds.meta import Condition
from jobtree.api.kinds.run import SPEAKS, UNPAID, IndexRun, Run, RunStatus
from jobtree.api.values.counted import counted, named
from jobtree.cluster.protocol import Ref, Write
from jobtree.world.naming import arrays
from jobtree.world.plan import Plan
from jobtree.world.reading.intake import Intake

_LONGEST: Final = 1024
"""Most characters of an Event's message."""
_GOOD: Final = frozenset({"Running", "Completed"})
RISK: Final = "MayBeCut"
"""Reason of an Event that warns of a promise's cuts: it comes at least ``reservations.notice`` before them."""


def events(intake: Intake, plan: Plan) -> Iterator[Write]:
    """An Event for each run that gets another phase, reason to wait, payer or width, or in a promise's way."""
    stored = arrays.Runs(intake.runs)
    leases = {(lease.namespace, lease.name): lease for lease in intake.leases}
    lost = {leases[each.namespace, each.name].run_key: each.reason for each in plan.closures}
    dates = {f"{each.namespace}/{each.name}": each.status.earliest_start for each in plan.reservations}
    dates |= {f"{each.namespace}/{each.name}": each.status.earliest_start for each in plan.promises}
    for update in plan.runs:
        run = stored.get((update.namespace, update.name))
        if run is None or not arrays.is_new(update.status, run.status, is_index=isinstance(run, IndexRun)):
            continue
        for reason, message, good in _told(run.status, update.status, lost.get((run.namespace, run.name), "")):
            yield _event(run, plan, reason, message, good=good)
        if new := [each for each in update.status.conflict_sets if each not in run.status.conflict_sets]:
            yield _event(run, plan, RISK, _risk(update.status, new, dates), good=False)
    yield from _turns(stored, plan)


def _turns(stored: arrays.Runs, plan: Plan) -> Iterator[Write]:
    """An Event for each run that loses a payer, and one for each that gets one back."""
    said: dict[tuple[str, str, bool], list[str]] = {}
    for turn in plan.turns:
        said.setdefault((turn.namespace, turn.name, turn.paid), []).append(turn.message)
    for (namespace, name, paid), messages in said.items():
        if (run := stored.get((namespace, name))) is not None:
            yield _event(run, plan, "Funded" if paid else UNPAID[0], " ".join(messages), good=paid)


def _risk(status: RunStatus, new: Sequence[str], dates: Mapping[str, Time | None]) -> str:
    """The warning of a run that is in the way of these promises."""
    due = [f"{each} (due {date})" if (date := dates.get(each)) else each for each in new]
    return f"It is in the way of {named(due)}: it loses all with a chance of {float(status.kill_probability or 0):.1%}."


def _told(before: RunStatus, after: RunStatus, lost: str) -> Iterator[tuple[str, str, bool]]:
    """What is to be said: a reason, a sentence, and whether it is good news. ``lost``: why leases of it are closed."""
    phase = after.phase or "Pending"
    now, then = _condition(after, phase), _condition(before, before.phase or "Pending")
    said = " ".join(each.message for each in after.conditions if each.type in {"Admitted", "Scheduled"})
    again = phase == before.phase == "Running" and before.started != after.started
    if again:
        yield "Restarted", f"{lost or 'A new start'} ended what ran; it starts again. {said}", False
    elif phase == "Running" and before.phase != phase:
        yield "Started", said, True
    elif phase != "Running" and now is not None and (before.phase, then and then.reason) != (after.phase, now.reason):
        yield now.reason or phase, now.message, phase in _GOOD
    held, holds = (each.width.allocated if each.width else 0 for each in (before, after))
    if before.phase == after.phase == "Running" and held != holds and not again:
        yield "Grown" if holds > held else "Shrunk", f"It has {counted(holds, 'GPU')} now, after {held}.", holds > held


def _condition(status: RunStatus, phase: str) -> Condition | None:
    return next((each for each in status.conditions if each.type == SPEAKS[phase]), None)


def _event(run: Run, plan: Plan, reason: str, message: str, *, good: bool) -> Write:
    name = f"{run.name}.{plan.cycle}.{reason}".lower()
    at = str(Time(plan.at))
    array = run.of if isinstance(run, IndexRun) else ""
    message = f"{run.name}: {message}" if array else message
    about = {
        "apiVersion": API_VERSION, "kind": "Run", "namespace": run.namespace, "name": array or run.name,
        "uid": run.metadata.uid,
    }  # fmt: skip
    body: dict[str, Any] = {
        "apiVersion": "v1", "kind": "Event", "involvedObject": about, "reason": reason,
        "message": message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…",
        "type": "Normal" if good else "Warning", "firstTimestamp": at, "lastTimestamp": at, "count": 1,
        "source": {"component": "jobtree"}, "reportingComponent": "jobtree", "reportingInstance": "jobtree",
    }  # fmt: skip
    return Write("create", Ref("Event", run.namespace, name), body)
