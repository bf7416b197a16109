"""The master model as a file for other solvers: MPS or LP, with names that people can read.

Whoever doubts a bound solves the file with a solver of their own: its optimum is no less than the plan's value and no
more than the plan's bound. Objective: stage ``starts``, Σ Active GPUs × (age.unit + min(age, age.cap)) / age.unit.
MPS has no word for maximising that all readers know, so there the objective is negated and minimised. A row with two
different bounds becomes two; a row without terms says nothing and is left out.
"""

import gzip
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from exporters.plans.modelnames import Names
from jobtree.api.values.errors import Refusal
from jobtree.api.values.scalars import Time
from jobtree.world.plan import Plan
from jobtree.world.tables.snapshot import Snapshot
from planner import master_of
from policies.model.linear import INF, Model

_PER_LINE: Final = 3


def of_plan(snapshot: Snapshot, plan: Plan, file: str) -> bytes:
    """The master that the plan's bound is of, as a file whose name is ``file`` (.mps or .lp, also with .gz).

    Raises Refusal where nothing that waits could start anywhere: there is no model then.
    """
    master = master_of(snapshot, plan.at, last=not plan.truncated)
    if not master.model.cost:
        raise Refusal("nothing that waits could start anywhere, so there is no model to write")
    unit = int(snapshot.policy.spec.age.unit)
    head = [
        f"Jobtree {plan.jobtree}: the master model of {Time(plan.at)}, snapshot {plan.snapshot}",
        f'Objective: stage "starts", GPUs x (age.unit + age) / age.unit, age.unit = {unit} s; MPS: negated, minimised',
    ]
    head += [
        f"Its optimum is from {stage.value / unit!r} (the plan's value) to {stage.bound / unit!r} (the plan's bound)"
        for stage in plan.stages
        if stage.name == "starts"
    ]
    return dump(master.model, Names.of(master), head, file)


@dataclass(frozen=True)
class _Row:
    """One side of a row of the model. ``sense``: L, G or E as in MPS; ``terms``: (column, value)."""

    name: str
    sense: str
    limit: float
    terms: list[tuple[int, float]]


def dump(model: Model, names: Names, head: Sequence[str], file: str) -> bytes:
    """The file's bytes, the same for the same model. ``head``: lines of comment; ``file``: its name says the format."""
    if file.removesuffix(".gz").endswith(".lp"):
        lines = [f"\\ {line}" for line in head] + _lp(model, names.for_lp())
    else:
        lines = [f"* {line}" for line in head] + _mps(model, names)
    data = "\n".join([*lines, ""]).encode()
    return gzip.compress(data, mtime=0) if file.endswith(".gz") else data


def _rows(model: Model, names: Names) -> list[_Row]:
    found = []
    for row, name in enumerate(names.rows):
        first, last = model.starts[row], model.starts[row + 1]
        terms = list(zip(model.indices[first:last], model.values[first:last], strict=True))
        lower, upper = model.row_lower[row], model.row_upper[row]
        if not terms:
            continue
        if lower == upper:
            found.append(_Row(name, "E", upper, terms))
            continue
        if upper < INF:
            found.append(_Row(name, "L", upper, terms))
        if lower > -INF:
            found.append(_Row(name if upper == INF else f"{name}#least", "G", lower, terms))
    return found


def _mps(model: Model, names: Names) -> list[str]:
    """Free MPS: fields parted by a space."""
    rows = _rows(model, names)
    entries: list[list[tuple[str, float]]] = [[("obj", -cost)] if cost else [] for cost in model.cost]
    for row in rows:
        for column, value in row.terms:
            entries[column].append((row.name, value))
    lines = ["NAME jobtree", "ROWS", " N obj", *(f" {row.sense} {row.name}" for row in rows), "COLUMNS"]
    inside = False
    for column, name in enumerate(names.columns):
        if model.integer[column] != inside:
            inside = not inside
            lines.append(f" MARKER 'MARKER' '{'INTORG' if inside else 'INTEND'}'")
        lines += [f" {name} {row} {_number(value)}" for row, value in entries[column] or [("obj", 0.0)]]
    if inside:
        lines.append(" MARKER 'MARKER' 'INTEND'")
    lines += ["RHS", *(f" RHS {row.name} {_number(row.limit)}" for row in rows if row.limit), "BOUNDS"]
    for name, lower, upper in zip(names.columns, model.lower, model.upper, strict=True):
        lines += [f" LO BOUNDS {name} {_number(lower)}"] if lower else []
        # an integer column without an upper bound is a binary to some readers, so that it has none is said
        lines.append(f" PL BOUNDS {name}" if upper == INF else f" UP BOUNDS {name} {_number(upper)}")
    return [*lines, "ENDATA"]


def _lp(model: Model, names: Names) -> list[str]:
    """The LP format of CPLEX, in the part that all readers share."""
    signs = {"L": "<=", "G": ">=", "E": "="}
    objective = [(column, cost) for column, cost in enumerate(model.cost) if cost]
    lines = ["Maximize", *_sum("obj", objective or [(0, 0.0)], names), "Subject To"]
    for row in _rows(model, names):
        *most, last = _sum(row.name, row.terms, names)
        lines += [*most, f"{last} {signs[row.sense]} {_number(row.limit)}"]
    lines.append("Bounds")
    for name, lower, upper in zip(names.columns, model.lower, model.upper, strict=True):
        lines.append(f" {_number(lower)} <= {name}" + ("" if upper == INF else f" <= {_number(upper)}"))
    lines += ["General", *(f" {name}" for name, whole in zip(names.columns, model.integer, strict=True) if whole)]
    return [*lines, "End"]


def _sum(name: str, terms: Sequence[tuple[int, float]], names: Names) -> list[str]:
    """``name: + 2 x - 3 y`` in lines of a few terms each."""
    parts = [f"{'-' if value < 0 else '+'} {_number(abs(value))} {names.columns[column]}" for column, value in terms]
    chunks = [" ".join(parts[i : i + _PER_LINE]) for i in range(0, len(parts), _PER_LINE)]
    return [f" {name}: {chunks[0]}", *(f"  {chunk}" for chunk in chunks[1:])]


def _number(value: float) -> str:
    """The shortest text that reads back as the same number."""
    return repr(float(value)).removesuffix(".0")
