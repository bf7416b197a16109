"""The rules between fields and between objects, for every kind.

`check_object` needs one object, `check_set` all of a file or cluster, `check_update` an object before and after an
edit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, Final

from jobtree.api.budget import Budget
from jobtree.api.decode import KindObject
from jobtree.api.errors import Refusal, wrong
from jobtree.api.lease import Lease
from jobtree.api.plan import Plan
from jobtree.api.policy import Policy
from jobtree.api.reservation import Reservation
from jobtree.api.rules_budget import check_budget
from jobtree.api.rules_other import check_lease, check_policy, check_reservation
from jobtree.api.rules_run import check_run
from jobtree.api.rules_set import set_problems
from jobtree.api.rules_update import check_update
from jobtree.api.run import Run

__all__ = ["check_object", "check_set", "check_update", "set_problems"]

_CHECKS: Final[dict[type, Callable[[Any], list[str]]]] = {
    Run: check_run,
    Budget: check_budget,
    Lease: check_lease,
    Reservation: check_reservation,
    Policy: check_policy,
    Plan: lambda _: [],
}
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_DOTTED: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", re.ASCII)
#: A run's name has no dots: it becomes part of the DNS names of its pods.
_RUN_NAME: Final = (_LABEL, "a name of lower-case letters, digits and -, such as train-32")
_NAME: Final = (_DOTTED, "a name of lower-case letters, digits, - and ., such as rai-h100")


def check_object(item: KindObject) -> list[str]:
    """Checks what one object alone can tell. Returns warnings, one sentence each; raises Refusal."""
    try:
        metadata = item.metadata
        pattern, allowed = _RUN_NAME if isinstance(item, Run) else _NAME
        if not pattern.fullmatch(metadata.name):
            raise wrong("metadata.name", metadata.name, allowed)
        if metadata.namespace and not _LABEL.fullmatch(metadata.namespace):
            raise wrong("metadata.namespace", metadata.namespace, "lower-case letters, digits and -")
        return [f"{item.subject}: {warning}" for warning in _CHECKS[type(item)](item)]
    except Refusal as refusal:
        raise refusal.about(item.subject) from None


def check_set(items: Iterable[KindObject]) -> None:
    """Checks what several objects together can tell: names, and cycles of follow, parent and parents.

    Raises the first Refusal; `set_problems` gives them all.
    """
    for problem in set_problems(items):
        raise problem
