"""Results as Markdown."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec

from benchmarks import machine
from benchmarks.cycles.baselines import ORDERS
from benchmarks.cycles.run import Cycle, Measured
from benchmarks.cycles.steps import NAMES
from exporters.plans.summary import gap


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """A run of the benchmarks."""

    date: str
    machine: machine.Machine
    measured: list[Measured]


PLANS: Final = (
    "One row per cycle of `jobtree cycle`, from the state file to the written plan: seconds of wall time, CPU seconds "
    "of the command and its planner process, peak memory of both, in brackets of each. *Gap*: how far the plan, as "
    "placed on slots and paid "
    "in whole GPUs, is from the relaxed bound that no plan can beat, in GPUs × (`age.unit` + min(age, `age.cap`)). "
    "Beside it what simple schedulers leave to the same bound on the same world under the same rules "
    "(`benchmarks/cycles/baselines.py` says what each does)."
)
WORLDS: Final = "What each world holds, and what its plan starts."
PHASES: Final = (
    "Seconds of wall time by phase of the cycle; *rest*: the start of Python, and the record in the lake. *First "
    "plan*: CPU seconds of the order `by age`, which is the planner's first incumbent."
)
STAGES: Final = (
    "The plan's own certificates, stage by stage (each given what those before it reach). A gap larger than the bound "
    "is a number in the stage's unit."
)


DATES: Final = (
    "The same two cycles once more by a planner that forecasts and promises nothing, each pair on its own copy of the "
    "world: what promises and estimates *add* to a cycle, and whether they cost the plan anything."
)
STEPS: Final = (
    "How far the value of the leading stage is from the bound after each part of the search: the relaxation; once it "
    "is decided how far starts are *allowed* at contested caps; *whole* numbers; a second solve near them; groups on "
    "nodes; payers; what is topped up. A loss names its part. Small masters are whole at once."
)


def markdown(result: Result) -> str:
    """The whole page."""
    parts = [
        f"# Planning cycles, {result.date}",
        f"Measured on {machine.sentence(result.machine)}.",
        *_sections(result),
    ]
    return "\n\n".join(parts) + "\n"


def _sections(result: Result) -> list[str]:
    """The tables under their headings."""
    rows = list(_rows(result.measured))
    phases = list(result.measured[0].cycles[0].phases)
    return [
        "## Plans and their gaps",
        PLANS,
        table(["world", "wall s", "CPU s", "peak MB", "gap", *ORDERS], (_plan(row) for row in rows)),
        "## Worlds",
        WORLDS,
        table(
            ["world", "GPUs", "running GPUs", "runs", "pending GPUs", "runs", "started GPUs", "runs"],
            (_world(row) for row in rows),
        ),
        "## Phases",
        PHASES,
        table(["world", "first plan", *phases, "rest"], (_phases(row, phases) for row in rows)),
        *_dates(rows),
        *_steps(rows),
        "## Stages",
        STAGES,
        table(
            ["world", "stage", "value", "bound", "gap", "unit"],
            (_stage(row, number) for row in rows for number in range(len(row.cycle.stages))),
            left=2,
        ),
    ]


def brief(result: Result) -> str:
    """One table: sizes, seconds, and gaps beside those of simple orders."""
    header = ["world", "GPUs", "runs that wait", "wall s", "gap", *ORDERS]
    return table(header, (_brief(row) for row in _rows(result.measured)))


class Row(msgspec.Struct, frozen=True):
    """A cycle of a case: its number, and the bound that its gap is measured to."""

    measured: Measured
    number: int
    bound: int

    @property
    def cycle(self) -> Cycle:
        """What was measured."""
        return self.measured.cycles[self.number]

    @property
    def name(self) -> str:
        """The world, and where it is one of several cycles which."""
        return self.measured.case.name + (", a minute later" if self.number else "")


def _rows(measured: Iterable[Measured]) -> Iterator[Row]:
    bounds: dict[str, int] = {}
    for each in measured:
        bounds[each.case.name] = each.cycles[0].bound
        for number, cycle in enumerate(each.cycles):
            yield Row(each, number, bounds.get(each.case.bound_of, cycle.bound))


def _plan(row: Row) -> list[str]:
    cycle = row.cycle
    wall = f"{cycle.wall:.1f}" + (", cut short" if cycle.truncated else "")
    gap = percent(cycle.value, row.bound) if cycle.value else "starts nothing"
    known = {} if row.number else {each.name: percent(each.value, row.bound) for each in row.measured.baselines}
    parent, child = cycle.parent.peak_mb, cycle.child.peak_mb
    peaks = f"{parent + child} ({parent} + {child})"
    return [row.name, wall, f"{cycle.cpu:.1f}", peaks, gap, *(known.get(order, "") for order in ORDERS)]


def _brief(row: Row) -> list[str]:
    facts = row.measured.facts
    name, wall, _, _, *gaps = _plan(row)
    return [name, f"{facts.gpus:,}", f"{facts.pending_runs:,}", wall, *gaps]


def percent(value: int, bound: int) -> str:
    """How far a value is below its bound."""
    return f"{(bound - value) / max(1, bound):.3%}"


def _world(row: Row) -> list[str]:
    facts, cycle = row.measured.facts, row.cycle
    before = [facts.running_gpus, facts.running_runs, facts.pending_gpus, facts.pending_runs]
    shown = [f"{facts.gpus:,}", *(f"{n:,}" for n in before)] if not row.number else [""] * 5
    return [row.name, *shown, f"{cycle.started_gpus:,}", f"{cycle.started_runs:,}"]


def _phases(row: Row, phases: Sequence[str]) -> list[str]:
    baselines = row.measured.baselines if not row.number else []
    first = next((f"{each.cpu:.2f}" for each in baselines if each.name == "by age"), "")
    seconds = [row.cycle.phases[name] for name in phases]
    return [row.name, first, *(f"{each:.2f}" for each in [*seconds, row.cycle.wall - sum(seconds)])]


def _dates(rows: Iterable[Row]) -> list[str]:
    """The table of what dates add, unless nothing was measured of that."""
    lines = [_added(row, row.measured.undated[row.number]) for row in rows if row.measured.undated]
    header = ["world", "wall s", "CPU s", "without", "CPU s", "adds", "in CPU", "gap", "without"]
    return ["## Forecast and promises", DATES, table(header, lines)] if lines else []


def _added(row: Row, without: Cycle) -> list[str]:
    dated = row.cycle
    seconds = [f"{each:.1f}" for cycle in (dated, without) for each in (cycle.wall, cycle.cpu)]
    more = [f"{new / old - 1:.0%}" for new, old in ((dated.wall, without.wall), (dated.cpu, without.cpu))]
    gaps = [percent(cycle.value, cycle.bound) for cycle in (dated, without)]
    return [row.name, *seconds, *more, *gaps]


def _steps(rows: Iterable[Row]) -> list[str]:
    """The table of the parts of the search, unless nothing was measured of them."""
    lines = [[row.name, *_step(row)] for row in rows if row.measured.steps and not row.number]
    return ["## Parts of the search", STEPS, table(["world", *NAMES], lines)] if lines else []


def _step(row: Row) -> list[str]:
    known = {step.name: percent(step.value, row.bound) for step in row.measured.steps}
    return [known.get(name, "") for name in NAMES]


def _stage(row: Row, number: int) -> list[str]:
    """A stage's row; one without a proof states its value only."""
    stage = row.cycle.stages[number]
    proof = [f"{stage.bound:,}", gap(stage, number=",")] if stage.proven else ["", ""]
    return [row.name, stage.name, f"{stage.value:,}", *proof, stage.unit]


def table(header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> str:
    """A table in Markdown, its first ``left`` columns on the left."""
    rule = [":---" if column < left else "---:" for column in range(len(header))]
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, rule, *rows])
