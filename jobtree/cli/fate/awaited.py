"""What a run waits for that no plan weighs: its owner's resume, or other runs; and what would end that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobtree.api.kinds.run import OVER
from jobtree.api.values.counted import named
from jobtree.cli.common import lookup
from jobtree.cli.fate import fate
from jobtree.cli.fate.remedies import Answer, Shown

if TYPE_CHECKING:
    from jobtree.api import Run
    from jobtree.world.plan import Plan
    from jobtree.world.reading.intake import Intake


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
    """The upstream runs that are outstanding, with their phases; those that failed never complete."""
    from planner.remedies import Change, Who, written

    names = run.spec.follow.after if run.spec.follow else ()
    there = {each.name: each for each in intake.runs if each.namespace == run.namespace and each.name in names}
    phases = {name: lookup.phase(fate.after(there[name], plan)) if name in there else "not there" for name in names}
    left = [name for name in names if phases[name] not in OVER]
    failed = [name for name in names if phases[name] == "Failed"]
    found = []
    if left:
        words = f"{named([f'{name} ({phases[name]})' for name in left])} {'complete' if left[1:] else 'completes'}"
        found.append(Shown(kind="upstream", who=Who.OTHERS.words, words=words))
    if failed:
        rest = [name for name in names if name not in failed]
        change = Change(f"Run {run.namespace}/{run.name}", "spec.follow.after" if rest else "spec.follow", rest or None)
        words = f"{named(failed)} failed and never {'complete' if failed[1:] else 'completes'}"
        found.append(Shown(kind="follow", who=Who.AGAIN.words, words=words, how=written([change])))
    return found
