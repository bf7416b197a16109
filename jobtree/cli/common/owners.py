"""Whom `--owner` means: an owner and its descendants, or with a trailing `:*` its descendants alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from jobtree.api.values.errors import Refusal
from jobtree.api.values.nearest import nearest
from jobtree.api.values.scalars import OwnerPath
from jobtree.world.naming.kinship import family_of

if TYPE_CHECKING:
    from jobtree.world.reading.intake import Intake

BELOW: Final = ":*"
HELP: Final = f"OWNER and its descendants; OWNER{BELOW} is its descendants alone"


def meant(intake: Intake, text: str | None) -> Callable[[str], bool]:
    """Whether an owner is one of those that the text means; None: every owner is.

    Descendants are those below it by their path, and those that Budgets' ``parents`` put below it. Raises Refusal for
    an owner that nothing in the cluster names, with the nearest that is named.
    """
    if text is None:
        return lambda _: True
    top = text.removesuffix(BELOW)
    known = owners(intake)
    if top not in known:
        near = nearest(top, known)
        hint = f"did you mean {near}{BELOW if text.endswith(BELOW) else ''}?" if near else _some(known)
        raise Refusal(f"there is no owner {top}: no Budget, Run or Lease names it; {hint}")
    family = family_of((budget.spec.owner, budget.spec.parents) for budget in intake.budgets)

    def is_meant(owner: str) -> bool:
        if owner == top:
            return not text.endswith(BELOW)
        return any(above == top or above.startswith(f"{top}:") for above in family.lineage(owner))

    return is_meant


def owners(intake: Intake) -> set[str]:
    """Every owner that an object names, and those above them by their paths."""
    named: set[str] = {each for lease in intake.leases for each in (lease.spec.owner, lease.spec.run_owner)}
    named |= {run.spec.owner for run in intake.runs}
    named |= {each for budget in intake.budgets for each in (budget.spec.owner, *(budget.spec.parents or ()))}
    return named | {above for owner in named for above in OwnerPath(owner).ancestors()}


def _some(known: set[str]) -> str:
    if not known:
        return "it has no owners yet"
    shown = sorted(known, key=lambda owner: (owner.count(":"), owner))[:5]
    return f"there are {', '.join(shown)}{', …' if len(known) > len(shown) else ''}"
