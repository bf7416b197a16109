"""The rules between fields and between objects, for every kind.

`check_object` (and `problems`, which finds all) needs one object, `check_set` all of a file or cluster,
`check_update` an object before and after an edit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from jobtree.api.kinds.budget import Budget
from jobtree.api.kinds.core import Node
from jobtree.api.kinds.lease import Lease
from jobtree.api.kinds.plan import Plan
from jobtree.api.kinds.policy import Policy
from jobtree.api.kinds.reservation import Reservation
from jobtree.api.kinds.run import Run
from jobtree.api.rules.budget import budget_problems, budget_warnings
from jobtree.api.rules.decode import KindObject
from jobtree.api.rules.edits import check_update
from jobtree.api.rules.others import lease_problems, policy_problems, reservation_problems
from jobtree.api.rules.run import run_problems, run_warnings
from jobtree.api.rules.together import set_problems
from jobtree.api.values.errors import Refusal, wrong

__all__ = ["check_node", "check_object", "check_set", "check_update", "problems", "set_problems"]

_PROBLEMS: Final[dict[type, Callable[[Any], Iterable[Refusal]]]] = {
    Run: run_problems,
    Budget: budget_problems,
    Lease: lease_problems,
    Reservation: reservation_problems,
    Policy: policy_problems,
    Plan: lambda _: (),
}
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_DOTTED: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", re.ASCII)
#: A run's name has no dots: it becomes part of the DNS names of its pods.
_RUN_NAME: Final = (_LABEL, "a name of lower-case letters, digits and -, such as train-32")
_NAME: Final = (_DOTTED, "a name of lower-case letters, digits, - and ., such as rai-h100")


def check_object(item: KindObject) -> list[str]:
    """Checks what one object alone can tell. Returns warnings, one sentence each; raises the first Refusal."""
    for problem in problems(item):
        raise problem
    warnings = run_warnings(item) if isinstance(item, Run) else []
    warnings += budget_warnings(item) if isinstance(item, Budget) else []
    return [f"{item.subject}: {warning}" for warning in warnings]


def problems(item: KindObject) -> Iterator[Refusal]:
    """Every fault that one object alone can tell, in a fixed order."""
    metadata = item.metadata
    pattern, allowed = _RUN_NAME if isinstance(item, Run) else _NAME
    if not pattern.fullmatch(metadata.name):
        yield wrong("metadata.name", metadata.name, allowed).about(item.subject)
    if metadata.namespace and not _LABEL.fullmatch(metadata.namespace):
        yield wrong("metadata.namespace", metadata.namespace, "lower-case letters, digits and -").about(item.subject)
    yield from (problem.about(item.subject) for problem in _PROBLEMS[type(item)](item))


def check_node(node: Node) -> None:
    """Raises Refusal for a name that no lease could say: a server takes none that is not a DNS subdomain either."""
    pattern, allowed = _NAME
    if not pattern.fullmatch(node.metadata.name):
        raise wrong("metadata.name", node.metadata.name, allowed).about(f"Node {node.metadata.name}")


def check_set(items: Iterable[KindObject]) -> None:
    """Checks what several objects together can tell: names, and cycles of follow, parent and parents.

    Raises the first Refusal; `set_problems` gives them all.
    """
    for problem in set_problems(items):
        raise problem
