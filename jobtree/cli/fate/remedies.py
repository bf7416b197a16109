"""Remedies as `explain` prints them: cheapest first, each with what to type or which field to write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from exporters.plans.nodelist import compress, natural
from jobtree.api import Run, Time
from jobtree.api.values.counted import counted

if TYPE_CHECKING:
    from jobtree.cli.common.args import Options
    from jobtree.world.plan import Plan
    from jobtree.world.reading.intake import Intake
    from planner.remedies import Change, Remedies, Remedy

NAMED: Final = 10
"""Most holders of GPUs that a line names."""


class Field(msgspec.Struct, frozen=True):
    """A field of an object with the value that it is to have; null: it is to be left out."""

    object: str
    field: str
    value: Any


class Shown(msgspec.Struct, frozen=True, omit_defaults=True):
    """A remedy as ``-o json`` prints it.

    ``gpus``: what it costs; ``nodes``: GPUs to be freed there; ``at``: when the run starts, if not at once.
    """

    kind: str
    who: str
    words: str
    gpus: int = 0
    how: str = ""
    nodes: dict[str, int] = {}
    changes: list[Field] = []
    at: Time | None = None


class Holder(msgspec.Struct, frozen=True, rename="camel"):
    """A run that holds GPUs where they are missing."""

    run: str
    owner: str
    gpus: int


class Answer(msgspec.Struct, frozen=True):
    """``remedies``: cheapest first; ``taken``: changes that other runs would profit from instead.

    ``holders``: who holds the GPUs that the run lacks, in the place where it lacks least, most first.
    ``planned``: whether each was planned and starts the run, else it has to come before the run is planned at all;
    ``confirmed_now``: whether that was in the world of now, too, and not only in the one after this cycle.
    """

    remedies: list[Shown] = []
    taken: list[str] = []
    planned: bool = True
    confirmed_now: bool = False
    holders: list[Holder] = []

    def held_by(self) -> list[str]:
        """A line with the largest holders, and the number of the rest."""
        said = [f"run/{each.run} of {each.owner} ({each.gpus})" for each in self.holders[:NAMED]]
        rest = len(self.holders) - NAMED
        more = f" and {counted(rest, 'more run', 'more runs')}" if rest > 0 else ""
        return [f"heldBy: {', '.join(said)}{more}"] if said else []

    def sections(self) -> list[tuple[str, list[str]]]:
        """A heading with its lines for what there is: remedies, one line each, and what is none."""
        found = [f"{each.words}{f': {each.how}' if each.how else ''}" for each in self.remedies]
        parts = [(self.title, found)] if found else []
        if not found:
            parts.append(("No remedy", ["no change that was tried, alone or combined, starts it"]))
        if self.taken:
            parts.append(("No remedies", self.taken))
        return parts

    @property
    def title(self) -> str:
        """What the remedies are."""
        if not self.planned:
            return "What has to come first"
        when = "" if self.confirmed_now else ", after the next cycle"
        return f"Remedies, cheapest first; each was planned and starts the run{when}"


def of(run: Run, intake: Intake, plan: Plan, options: Options) -> Answer | None:
    """Remedies for a run that waits under a plan made from ``intake``; None for one that does not,
    or waits for other runs (see `awaited`).
    """
    if not any((wait.namespace, wait.name) == (run.namespace, run.name) for wait in plan.waits):
        return None
    from jobtree.world.tables.snapshot import take
    from planner.remedies import remedies

    found = remedies(take(intake), plan, (run.namespace, run.name))
    return _answer(found, run, options.reach) if found.weighed else None


def _answer(found: Remedies, run: Run, reach: str) -> Answer:
    shown = [_shown(each, [_asked(change, run) for change in each.changes], reach) for each in found.found]
    holders = [Holder(f"{each.run[0]}/{each.run[1]}", each.owner, each.gpus) for each in found.holders]
    return Answer(remedies=shown, taken=found.taken, confirmed_now=found.now, holders=holders)


def _shown(remedy: Remedy, changes: Sequence[Change], reach: str) -> Shown:
    return Shown(
        kind=remedy.kind,
        who=remedy.who.words,
        words=remedy.words,
        gpus=remedy.gpus,
        how=_how(remedy, changes, reach),
        nodes=dict(remedy.nodes),
        changes=[Field(change.subject, change.field, change.value) for change in changes],
        at=None if remedy.at is None else Time(remedy.at),
    )


def _how(remedy: Remedy, changes: Sequence[Change], reach: str) -> str:
    """The commands on this cluster, or the fields and the places."""
    from planner.remedies import typed, written

    if remedy.commands:
        return typed(remedy.commands, reach)
    return "; ".join(part for part in (written(changes), _places(remedy.nodes)) if part)


def _places(nodes: Sequence[tuple[str, int]]) -> str:
    """``8 on b01-b07, 4 on b08``."""
    by_number: dict[int, list[str]] = {}
    for name, gpus in sorted(nodes, key=lambda place: natural(place[0])):
        by_number.setdefault(gpus, []).append(name)
    return ", ".join(f"{gpus} on {compress(names)}" for gpus, names in by_number.items())


def _asked(change: Change, run: Run) -> Change:
    """The change where the run asks for a label: in its selector, or in its template's."""
    from planner.remedies.record import SELECTOR, label_of

    label = change.field.removeprefix(f'{SELECTOR}["').removesuffix('"]')
    if change.field == label_of(SELECTOR, label) and label not in run.spec.locality.selector:
        return replace(change, field=label_of("spec.template.spec.nodeSelector", label))
    return change
