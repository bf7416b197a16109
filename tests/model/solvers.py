"""Other eyes on a model file: HiGHS' own readers, and SCIP, which shares no code with HiGHS."""

from pathlib import Path
from typing import Final

import highspy
import pyscipopt

from planner.solver.highs import new_highs, options

EXACT: Final = options(seed=0, gap=0.0, nodes=2**31 - 1)
"""HiGHS to the end, and as the planner has it: presolved, HiGHS 1.15.1 fails on some models of three columns."""


def highs(path: Path) -> highspy.Highs:
    """HiGHS with the file read and solved to the end."""
    solver = new_highs(EXACT)
    solver.readModel(str(path))
    solver.run()
    assert solver.getModelStatus() == highspy.HighsModelStatus.kOptimal
    return solver


def scip(path: Path) -> float:
    """The optimum that SCIP finds, in the file's own sense."""
    solver = pyscipopt.Model()
    solver.hideOutput()
    solver.readProblem(str(path))
    solver.optimize()
    assert solver.getStatus() == "optimal"
    return float(solver.getObjVal())
