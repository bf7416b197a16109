"""What a run waits for that no plan weighs: its owner's resume, or other runs; and what would end that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from jobtree.api.kinds.run import OVER
from jobtree.api.values.counted import named
from jobtree.cli.common import lookup
from jobtree.cli.fate import fate
from jobtree.cli.fate.remedies import Answer, Shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from jobtree.api import Run
    from jobtree.world.plan import Plan
    from jobtree.world.reading.intake import Intake

_DELETED: Final = "deleted"
"""Of an upstream that is gone and had not completed."""


def of(run: Run, intake: Intake, plan: Plan, reach: str) -> Answer | None:
    """What would have a suspended run, or one that follows others, weighed; None for any other run.

    ``plan``: made from ``intake``; ``reach``: options that name the cluster, for commands that are to be typed.
    """
    if lookup.phase(fate.after(run, plan)) not in {"Pending", "Waiting"}:
        return None
    shown = _resumed(run, reach) if run.spec.state == "Suspended" else _completed(run, intake, plan)
    return Answer(remedies=shown, planned=False) if shown else None


def _resumed(run: Run, reach: str) -> list[Shown]:
    from planner.remedies import Who
    from planner.remedies.record import Command

    how = Command(f"resume {run.name}", run.namespace).typed(reach)
    return [Shown(kind="resume", who=Who.OWNER.words, words="its owner resumes it", how=how)]


def _completed(run: Run, intake: Intake, plan: Plan) -> list[Shown]:
    """The upstream runs that are outstanding, with their phases; those that failed or were deleted never complete."""
    from planner.remedies import Change, Who, written

    names = run.spec.follow.after if run.spec.follow else ()
    phases = _phases(run, names, intake, plan)
    left = [name for name in names if phases[name] not in {*OVER, _DELETED}]
    failed = [name for name in names if phases[name] == "Failed"]
    deleted = [name for name in names if phases[name] == _DELETED]
    found = []
    if left:
        words = f"{named([f'{name} ({phases[name]})' for name in left])} {'complete' if left[1:] else 'completes'}"
        found.append(Shown(kind="upstream", who=Who.OTHERS.words, words=words))
    if lost := [*failed, *deleted]:
        rest = [name for name in names if name not in lost]
        change = Change(f"Run {run.namespace}/{run.name}", "spec.follow.after" if rest else "spec.follow", rest or None)
        why = [f"{named(failed)} failed"] if failed else []
        why += [f"{named(deleted)} {'were' if deleted[1:] else 'was'} deleted"] if deleted else []
        never = " and ".join(why) + (", and they never complete" if lost[1:] else " and never completes")
        if (ends := fate.after(run, plan).status.follow_deadline) is not None:
            never += f"; {run.name} fails too at {ends}"
        found.append(Shown(kind="follow", who=Who.AGAIN.words, words=never, how=written([change])))
    return found


def _phases(run: Run, names: Iterable[str], intake: Intake, plan: Plan) -> dict[str, str]:
    """Of upstream runs by name; of those that are there no more as their Leases tell, if they had any."""
    from jobtree.world.tables.snapshot import take
    from policies.inputs.runs import read_runs
    from policies.inputs.unread import unread_of
    from policies.lifecycle import follow

    there = {each.name: each for each in intake.runs if each.namespace == run.namespace and each.name in names}
    phases = {name: lookup.phase(fate.after(each, plan)) for name, each in there.items()}
    if len(there) < len({*names}):
        tables = take(intake).tables
        runs = {row.key: row for row in read_runs(tables["runs"], tables["arrays"])}
        unread = unread_of(tables["quarantine"], tables["unread"]).runs
        gone = follow.gone(tables["leases"], runs, unread)
        told = {"Completed": "Completed", "Failed": _DELETED}
        for name in names:
            if name not in there:
                key = run.namespace, name
                phases[name] = "set aside" if key in unread else told.get(gone.get(key, ""), "to be submitted")
    return phases
