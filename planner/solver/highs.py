"""HiGHS behind a Model: one thread, a fixed seed, no clock."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

import highspy
import msgspec
import numpy as np

from jobtree.world.tables.values import Bools, Floats
from policies.model.linear import INF, Model

Settings = dict[str, Any]
_JUMPS: Final = "mip_heuristic_run_feasibility_jump"
LEAN: Final[Settings] = {
    "mip_allow_restart": False,
    "mip_detect_symmetry": False,
    _JUMPS: False,
}
"""What of HiGHS costs more than it gives where few columns are integer."""
SMALL: Final = 50
"""Columns of a model up to which feasibility jump is left out: its first jump takes milliseconds, and all else less."""
FEW_CUTS: Final[Settings] = {"mip_pool_soft_limit": 50}
"""HiGHS finds thousands of cuts in models of money and uses some dozen: keeping the others takes most of its time."""
REMEMBERED: Final = 1_000
"""Columns of a model up to which its answer is kept: those of cuts and of prices come again from cycle to cycle."""
KEPT: Final = 1 << 12
"""Answers that are kept, with what was asked, at some 10 kB each."""
NOISE: Final = 1e-6
"""What a solver finds differs from what it means by less than this: a value as near to a whole number counts as it."""


def to_highs(model: Model, *, relaxed: bool) -> highspy.HighsLp:
    """The arrays as HiGHS wants them."""
    lp = highspy.HighsLp()
    lp.num_col_ = len(model.cost)
    lp.num_row_ = len(model.row_lower)
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = np.asarray(model.cost, dtype=np.float64)
    lp.col_lower_ = np.asarray(model.lower, dtype=np.float64)
    lp.col_upper_ = np.asarray(model.upper, dtype=np.float64)
    lp.row_lower_ = np.asarray(model.row_lower, dtype=np.float64)
    lp.row_upper_ = np.asarray(model.row_upper, dtype=np.float64)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = model.entries.start.astype(np.int32)
    lp.a_matrix_.index_ = model.entries.column.astype(np.int32)
    lp.a_matrix_.value_ = model.entries.value
    if not relaxed:
        lp.integrality_ = [
            highspy.HighsVarType.kInteger if whole else highspy.HighsVarType.kContinuous for whole in model.integer
        ]
    return lp


@dataclass(frozen=True)
class Solution:
    """Answer of a solve. ``values`` is None where no feasible point was found; ``infeasible``: there is none.

    ``bound`` holds whatever happened. ``duals``: of the rows, where the relaxation was solved to its optimum.
    ``relaxed``: the value of the relaxation that a large model began from; ``allowed``: the same once it was decided
    how far starts are allowed at contested caps.
    """

    values: Floats | None
    objective: float
    bound: float
    optimal: bool
    duals: Floats | None = None
    infeasible: bool = False
    relaxed: float | None = None
    allowed: float | None = None

    def within(self, gap: float) -> bool:
        """Does it end within this part of its bound?"""
        return within(self.objective, self.bound, gap)


def options(seed: int, gap: float, nodes: int) -> Settings:
    """The solver's options: one thread, a fixed seed, and no clock, so that equal input gives equal output.

    Nothing is presolved: in HiGHS 1.12 to 1.15 that never ends on some models of a dozen columns and more, heedless of
    any limit of nodes or time, and on large ones it takes as long as it saves.
    """
    return {
        "output_flag": False,
        "threads": 1,
        "parallel": "off",
        "random_seed": seed,
        "mip_rel_gap": gap,
        "mip_max_nodes": nodes,
        "mip_abs_gap": 1e-6,
        "mip_feasibility_tolerance": 1e-7,
        "presolve": "off",
    }


def new_highs(settings: Settings) -> highspy.Highs:
    """A solver with these options."""
    highs = highspy.Highs()  # type: ignore[no-untyped-call]  # highspy types its methods, not its constructor
    highs.silent()
    for name, value in settings.items():
        highs.setOptionValue(name, value)
    return highs


def pass_model(highs: highspy.Highs, lp: highspy.HighsLp) -> None:
    """Hand a model over. HiGHS solves something else where it refuses one, say for a column twice in a row."""
    if highs.passModel(lp) != highspy.HighsStatus.kOk:
        raise ArithmeticError("the solver refuses the model")


def solve(model: Model, settings: Settings, *, relaxed: bool = False, start: Sequence[float] | None = None) -> Solution:
    """Maximise. An answer that is neither optimal nor infeasible keeps the bound at infinity (never trusted).

    Equal input has equal output: what was asked of late is not solved again. Nobody writes to what is answered.
    """
    if len(model.cost) > REMEMBERED:
        return _solved(model, settings, relaxed=relaxed, start=start)
    given = model.content, settings, relaxed, None if start is None else [*start]
    return _again(msgspec.msgpack.encode(given, enc_hook=float))


@lru_cache(maxsize=KEPT)
def _again(given: bytes) -> Solution:
    content, settings, relaxed, start = msgspec.msgpack.decode(given)
    return _solved(Model(*content), settings, relaxed=relaxed, start=start)


def _solved(model: Model, settings: Settings, *, relaxed: bool, start: Sequence[float] | None) -> Solution:
    relaxed = relaxed or not any(model.integer)  # HiGHS states no bound beside the optimum where nothing is integer
    jumps = len(model.cost) > SMALL and settings.get(_JUMPS, True)
    highs = new_highs(settings | {_JUMPS: jumps})
    pass_model(highs, to_highs(model, relaxed=relaxed))
    if start is not None:
        solution = highspy.HighsSolution()
        solution.col_value = list(start)
        highs.setSolution(solution)
    highs.run()
    status = highs.getModelStatus()
    info = highs.getInfo()
    feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    values = np.asarray(highs.getSolution().col_value, dtype=np.float64) if feasible else None
    optimal = status == highspy.HighsModelStatus.kOptimal
    duals = None
    if relaxed:
        duals = np.asarray(highs.getSolution().row_dual, dtype=np.float64) if optimal else None
        bound = info.objective_function_value if optimal else INF
    else:
        bound = info.mip_dual_bound if optimal or feasible else INF
    return Solution(values, info.objective_function_value if feasible else -INF, bound, optimal, duals)


def within(value: float, bound: float, gap: float) -> bool:
    """Does a value end within this part of a bound?"""
    return value >= bound * (1 - gap)


def best_of(one: Solution, other: Solution) -> Solution:
    """The better point, and the lesser bound."""
    best = other if other.objective > one.objective else one
    return Solution(best.values, best.objective, min(one.bound, other.bound), optimal=False)


NOTHING: Final = Solution(None, -INF, INF, optimal=False)
"""No point, and no bound."""


def proven(bound: float) -> Solution:
    """A bound, and no point yet."""
    return replace(NOTHING, bound=bound)


@contextmanager
def only_integer(model: Model, columns: Bools) -> Iterator[None]:
    """Within, these columns of the model are integer and no others."""
    kept = model.integer
    model.integer = columns.tolist()
    try:
        yield
    finally:
        model.integer = kept


def relax(highs: highspy.Highs) -> Solution:
    """The optimum of a model without whole numbers; without values where there is none, or none is found."""
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        infeasible = highs.getModelStatus() == highspy.HighsModelStatus.kInfeasible
        return Solution(None, -INF, INF, optimal=False, infeasible=infeasible)
    value = highs.getInfo().objective_function_value
    return Solution(np.asarray(highs.getSolution().col_value, dtype=np.float64), value, value, optimal=True)


def integer_bound(bound: float, *, least: bool = False) -> int:
    """A solver's bound on integers, never tighter than it is: half a unit or 1e-9 of it is noise.

    ``least``: the bound of a maximisation of minus the stage's value, as the least value.
    """
    slack = max(0.5, 1e-9 * abs(bound))
    if not math.isfinite(bound):
        raise ArithmeticError(f"the solver gives no bound: {bound}")
    return math.ceil(-bound - slack) if least else math.floor(bound + slack)


def identity(settings: Settings) -> dict[str, Any]:
    """Name, version and options, as the Plan states them."""
    version = new_highs({}).version()
    return {
        "name": "HiGHS",
        "version": version,
        "options": {name: _text(value) for name, value in settings.items()},
    }


def _text(value: object) -> str:
    """A setting as text that stays text: unquoted ``1e-06`` is one to some readers of YAML and a number to others."""
    return np.format_float_positional(value, trim="0") if isinstance(value, float) else str(value)
