"""Whom `--owner` means in a cluster (`jobtree.world.naming.owners`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from jobtree.world.naming.owners import BELOW, with_those_above
from jobtree.world.naming.owners import meant as meant_of

if TYPE_CHECKING:
    from jobtree.world.reading.intake import Intake

HELP: Final = f"OWNER and its descendants; OWNER{BELOW} is its descendants alone"


def meant(intake: Intake, text: str | None) -> Callable[[str], bool]:
    """Whether an owner is one of those that the text means; None: every owner is. Raises Refusal as `meant_of` does."""
    if text is None:
        return lambda _: True
    budgets = ((budget.spec.owner, budget.spec.parents) for budget in intake.budgets)
    found = meant_of(text, owners(intake), budgets, missing=": no Budget, Run or Lease names it")
    return found.__contains__


def owners(intake: Intake) -> set[str]:
    """Every owner that an object names, and those above them by their paths."""
    named: set[str] = {each for lease in intake.leases for each in (lease.spec.owner, lease.spec.run_owner)}
    named |= {run.spec.owner for run in intake.runs}
    named |= {each for budget in intake.budgets for each in (budget.spec.owner, *(budget.spec.parents or ()))}
    return with_those_above(named)
