"""Other eyes on a model file: HiGHS' own readers, and SCIP, which shares no code with HiGHS."""

from pathlib import Path

import highspy
import pyscipopt

from planner.solver.highs import new_highs


def highs(path: Path) -> highspy.Highs:
    """HiGHS with the file read and solved to the end."""
    solver = new_highs({"mip_rel_gap": 0.0})
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
