"""`whatif`: the next cycle of a world in which something is otherwise, beside the next cycle of this one.

Nothing is written. What is changed need not be allowed to change in the cluster (a Run's width, say): it is a question.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from exporters.plans.nodelist import by_names, natural
from exporters.plans.summary import table
from jobtree.cli.changing.changes import OPTIONS
from jobtree.cli.common import progress, show
from jobtree.cli.common.args import Commands, Options, UsageError, command, start_planner
from jobtree.cli.common.numbers import plain, unit_of, worth

if TYPE_CHECKING:
    from jobtree.api import Budget, Run
    from jobtree.world.reading.intake import Intake
    from planner.advice.difference import Difference, Payers
    from planner.advice.edits import Edit

_Kind = TypeVar("_Kind", "Run", "Budget")
_Value = TypeVar("_Value")
Named = dict[str, dict[str, int]]
"""``namespace/name`` → payers with their GPUs."""


class Shown(msgspec.Struct, frozen=True, rename="camel"):
    """What ``-o json`` prints; each pair is now and then.

    ``starts``, ``stops``: runs that would hold GPUs, or no longer, with their payers; ``changes``: runs with other
    payers or widths; ``unfunded``: runs with more unfunded GPUs, by class; ``restarts``: runs that would end and start
    anew; ``told``: of runs that hold nothing, the phase, the reason and the start; ``flavors``: GPUs that there are,
    and that are held; ``stages``: values in their own units.
    """

    changed: list[str]
    starts: Named
    stops: Named
    changes: dict[str, list[dict[str, int]]]
    unfunded: dict[str, list[dict[str, int]]]
    restarts: Named
    told: dict[str, list[str]]
    flavors: dict[str, dict[str, list[int]]]
    stages: list[dict[str, Any]]

    @property
    def is_nothing(self) -> bool:
        """Is it all the same now and then?"""
        runs = self.starts or self.stops or self.changes or self.restarts or self.unfunded or self.told
        gpus = [pair for pairs in self.flavors.values() for pair in pairs.values()]
        pairs = [*gpus, *([each["now"], each["then"]] for each in self.stages)]
        return not runs and all(now == then for now, then in pairs)

    def lines(self) -> list[str]:
        """For people."""
        found = [f"What if {', and '.join(self.changed)}?"]
        for title, runs in (
            ("Would hold GPUs", self.starts),
            ("Would not hold GPUs", self.stops),
            ("Would end and start anew", self.restarts),
        ):
            found += _section(title, ("RUN", "GPUS", "PAYERS"), [(run, *_paid(runs[run])) for run in runs])
        rows = [(run, *_paid(now), *_paid(then)) for run, (now, then) in self.changes.items()]
        found += _section("Would hold them otherwise", ("RUN", "GPUS", "PAYERS", "THEN", "PAYERS THEN"), rows)
        losing = [(run, _paid(now)[1], _paid(then)[1]) for run, (now, then) in self.unfunded.items()]
        found += _section("Would lose their payers", ("RUN", "GPUS BY CLASS", "THEN"), losing)
        found += _section(
            "Would wait otherwise", ("RUN", "NOW", "THEN"), [(run, *pair) for run, pair in self.told.items()]
        )
        if self.is_nothing:
            return [*found, "", "Nothing would change: every run would fare as it does now."]
        if not (self.starts or self.stops or self.changes or self.restarts):
            found += ["", "Every run would hold what it holds now."]
        flavors = [
            (name, *(str(number) for number in (*pairs["gpus"], *pairs["held"])))
            for name, pairs in self.flavors.items()
        ]
        found += _section("GPUs", ("FLAVOR", "THERE", "THEN", "HELD", "THEN"), flavors)
        stages = [
            (each["name"], *(_value(each[when], each["unit"]) for when in ("now", "then")), unit_of(each["unit"]))
            for each in self.stages
        ]
        return [*found, *_section("Stages", ("STAGE", "NOW", "THEN", "UNIT"), stages)]


def add(commands: Commands) -> None:
    """Declares the command."""
    parser = command(
        commands,
        "whatif",
        _whatif,
        "plan a changed world beside the present one; every option may be given several times",
        example="kubectl runs --state cluster.yaml whatif --cap rai-sys/west=200 --cancel mm1",
    )
    parser.add_argument(
        "-f", "--filename", dest="filenames", action="append", default=[], metavar="FILE",
        help="Runs, Budgets and a Policy that are there instead of those of their names, or too; - for stdin",
    )  # fmt: skip
    for name, (metavar, words, _) in OPTIONS.items():
        parser.add_argument(f"--{name}", dest=name, action="append", default=[], metavar=metavar, help=words)


def _whatif(options: Options, given: argparse.Namespace) -> int:
    start_planner()
    makers = [(maker, text) for name, (*_, maker) in OPTIONS.items() for text in getattr(given, name)]
    if not makers and not given.filenames:
        raise UsageError("nothing is changed; say what is to be otherwise, with -f FILE or one of the options")
    intake = options.intake()
    other, words = _with_files(intake, given.filenames, options)
    edits: list[Edit] = []
    for maker, text in makers:
        said, made = maker(other, options, text)
        words.append(said)
        edits += made
    found = _compare(intake, other, edits, options.time)
    shown = _shown(found, words)
    if options.output in {"json", "yaml"}:
        show.data(shown, options.output)
    else:
        show.say(*shown.lines())
    return 0


def _compare(intake: Intake, other: Intake, edits: Iterable[Edit], at: int) -> Difference:
    from cronjobs.cycle import checked_plan
    from jobtree.world.tables.snapshot import take
    from planner.advice.difference import difference
    from planner.advice.edits import edited

    intake.refuse_past(at)
    worlds = (take(intake, at), edited(take(other, at), edits))
    with progress.shown() as on_phase:
        now, then = ((world, checked_plan(world, at, start_planner(), on_phase=on_phase)) for world in worlds)
    return difference(now, then)


def _with_files(intake: Intake, files: Sequence[str], options: Options) -> tuple[Intake, list[str]]:
    """The intake with the objects of files in place of those of their names; what they are, in words."""
    from jobtree.api import Budget, Policy, Run
    from jobtree.api.kinds.core import Node
    from jobtree.cli.changing import manifests, submit

    found = manifests.read(files, manifests.Place(options.namespace, intake.namespace))
    items = [each.item for each in found if not isinstance(each.item, Node)]
    if not items:
        return intake, []
    show.warn(submit.check(intake, found))
    runs = _placed(intake.runs, [item for item in items if isinstance(item, Run)], options.time)
    budgets = _placed(intake.budgets, [item for item in items if isinstance(item, Budget)], options.time)
    policy = next((item for item in items if isinstance(item, Policy)), intake.policy)
    words = [f"{item.subject} is as in the file" for item in items]
    return replace(intake, runs=runs, budgets=budgets, policy=policy), words


def _placed(there: Sequence[_Kind], items: Sequence[_Kind], at: int) -> tuple[_Kind, ...]:
    """What is there with other specs, and what is new, created at ``at``; by namespace and name."""
    from jobtree.api import Time

    found = {(each.namespace, each.name): each for each in there}
    for item in items:
        key = (item.namespace, item.name)
        new = msgspec.structs.replace(item.metadata, uid=f"whatif-{item.name}", creation_timestamp=Time(at))
        old = found.get(key)
        fields: dict[str, Any] = {"metadata": new} if old is None else {"spec": item.spec}
        found[key] = msgspec.structs.replace(item if old is None else old, **fields)
    return tuple(found[key] for key in sorted(found))


def _shown(found: Difference, words: list[str]) -> Shown:
    return Shown(
        changed=words,
        starts=_named(found.gain),
        stops=_named(found.lose),
        changes={"/".join(key): [now, then] for key, (now, then) in _by_name(found.change)},
        unfunded={"/".join(key): [now, then] for key, (now, then) in _by_name(found.classes)},
        restarts=_named(found.restart),
        told={"/".join(key): [now, then] for key, (now, then) in _by_name(found.told)},
        flavors={
            name: {
                "gpus": [found.gpus[name].present, found.gpus[name].otherwise],
                "held": [held.present, held.otherwise] if (held := found.held.get(name)) else [0, 0],
            }
            for name in sorted(found.gpus, key=natural)
        },
        stages=[
            {"name": each.name, "now": each.present, "then": each.otherwise, "unit": each.unit}
            for each in found.stages
        ],
    )  # fmt: skip


def _named(runs: dict[tuple[str, str], Payers]) -> Named:
    return {"/".join(key): payers for key, payers in _by_name(runs)}


def _by_name(runs: dict[tuple[str, str], _Value]) -> list[tuple[tuple[str, str], _Value]]:
    return sorted(runs.items(), key=lambda item: by_names(item[0]))


def _paid(payers: Payers) -> tuple[str, str]:
    """GPUs in all, and who pays how many."""
    return str(sum(payers.values())), ", ".join(f"{who} ({payers[who]})" for who in sorted(payers, key=natural))


def _section(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return ["", title, *(f"  {line}" for line in table(header, rows))] if rows else []


def _value(number: int | None, unit: str) -> str:
    return "-" if number is None else plain(worth(number, unit))
