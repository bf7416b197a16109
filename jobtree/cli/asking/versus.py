"""`explain RUN --versus OTHER`: why this one and not that one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from exporters.plans.nodelist import by_names
from exporters.plans.summary import table
from jobtree.api import Run, Time
from jobtree.api.values.counted import counted, named
from jobtree.api.values.scalars import DAY
from jobtree.cli.common import lookup
from jobtree.cli.common.numbers import plain, unit_of, worth

if TYPE_CHECKING:
    from jobtree.world.plan import Plan
    from jobtree.world.reading.intake import Intake
    from planner.advice.versus import Side, Versus

_FATES = {
    "runs": "runs",
    "starts": "starts in the next cycle",
    "waits": "waits",
    "out": "does not ask for GPUs now",
}


class Worth(msgspec.Struct, frozen=True):
    """What a stage is worth: as planned, and with the other run instead; integers in the stage's own unit."""

    stage: str
    planned: int
    instead: int
    unit: str

    def row(self) -> tuple[str, str, str, str]:
        """For people."""
        values = [plain(worth(value, self.unit)) for value in (self.planned, self.instead)]
        return self.stage, values[0], values[1], unit_of(self.unit)


class Shown(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What ``-o json`` prints. ``runs``: the two, by name."""

    runs: dict[str, dict[str, Any]]
    because: str
    caps: list[str] = []
    room: str = ""
    stages: list[Worth] = []
    also_start: list[str] = []
    then_wait: list[str] = []

    def lines(self) -> list[str]:
        """For people."""
        first, second = self.runs
        rows = [(what, *(_cell(side[what]) for side in self.runs.values())) for what in self.runs[first]]
        found = [*table(("", first, second), rows), ""]
        found += [f"cap of both: {words}" for words in self.caps]
        found += [self.room, ""]
        if self.stages:
            header = ("STAGE", "AS PLANNED", "INSTEAD", "UNIT")
            found += [*table(header, [each.row() for each in self.stages]), ""]
        return [*found, self.because]


def of(run: Run, other: Run, intake: Intake, plan: Plan) -> Shown:
    """The comparison of two runs under a plan made from ``intake``."""
    from jobtree.world.tables.snapshot import take
    from planner.advice.versus import versus

    found = versus(take(intake), plan, (run.namespace, run.name), (other.namespace, other.name))
    pairs = [] if found.instead is None or found.present is None else [
        (before, after) for before, after in zip(found.present.stages, found.instead.stages, strict=True)
    ]  # fmt: skip
    new, gone = _others(found)
    return Shown(
        runs={side.name: _facts(side) for side in (found.run, found.other)},
        because=_because(found, (run, other)),
        caps=[bound.words(found.run.name, found.other.name) for bound in found.meeting.bounds],
        room=_room(found),
        stages=[Worth(a.name, a.value, b.value, a.unit) for a, b in pairs],
        also_start=new,
        then_wait=gone,
    )


def _facts(side: Side) -> dict[str, Any]:
    return {
        "fate": _FATES[side.fate],
        "owner": side.owner,
        "created": str(Time(side.created)),
        "GPUs": side.gpus,
        "weight of a GPU": side.weight / DAY,
        "GPU-days of weight": side.weight * side.gpus / DAY,
    }


def _room(found: Versus) -> str:
    where = found.meeting
    others = f"; {counted(where.loose, 'cap')} that both count against with room left" if where.loose else ""
    if not where.domains:
        return f"no node is open to both{others}"
    domains = counted(where.domains, "domain is", "domains are")
    return f"{domains} open to both, with {counted(where.free, 'GPU')} free, {where.largest} of them in one{others}"


def _others(found: Versus) -> tuple[list[str], list[str]]:
    """Third runs that would start too, and that would then wait."""
    if found.present is None or found.instead is None:
        return [], []
    both = {found.run.key, found.other.key}
    new = found.instead.started - found.present.started - both
    gone = found.present.started - found.instead.started - both
    return _names(new), _names(gone)


def _names(keys: Iterable[tuple[str, str]]) -> list[str]:
    return ["/".join(key) for key in sorted(keys, key=by_names)]


def _because(found: Versus, runs: tuple[Run, Run]) -> str:
    """The answer in a sentence or two."""
    if found.chosen is None:
        return _no_choice(found, runs)
    placed, waits = found.chosen
    if found.instead is None:
        return f"They do not compete: even with {placed.name} held back, {waits.name} waits. {found.lacks}"
    new, gone = _others(found)
    third = f" {named(new)} would start too." if new else ""
    third += f" {named(gone)} would then wait." if gone else ""
    if placed.fate == "runs":
        rule = "what runs is not given up for what waits"
        return f"Because {placed.name} runs: {rule}. Were it suspended, {waits.name} could start.{third}"
    if found.differs is None:
        rule = "the heavier, then the older, then the first by name is started"
        return f"Both plans are worth the same in every stage; among equals {rule}.{third}"
    before, after = found.differs
    unit = unit_of(before.unit)
    planned, instead = worth(before.value, before.unit), worth(after.value, after.unit)
    more = plain(abs(planned - instead))
    better = (before.value > after.value) == (before.sense == "max")
    if not better:
        said = f"starting {waits.name} instead would be worth {more} {unit} more in stage {before.name}"
        return f"The plan is not the best one, within the gap that it states: {said}.{third}"
    word = "more" if before.sense == "max" else "less"
    said = f"starting {placed.name} is worth {more} {unit} {word}"
    return f"Because {said} in stage {before.name}: {plain(planned)} against {plain(instead)}.{third}"


def _no_choice(found: Versus, runs: tuple[Run, Run]) -> str:
    sides = (found.run, found.other)
    if all(side.placed for side in sides):
        return "Both have GPUs after the next cycle: there is nothing to choose."
    if all(side.fate == "waits" for side in sides):
        said = " ".join(f"{side.name}: {side.words}" for side in sides)
        return f"Both wait, neither because of the other. {said}"
    out = [
        f"{side.name} is not weighed: {side.words or f'it is {lookup.phase(run)}.'}"
        for side, run in zip(sides, runs, strict=True)
        if side.fate == "out"
    ]
    return " ".join(out)


def _cell(value: Any) -> str:
    return plain(value) if isinstance(value, float) else str(value)
