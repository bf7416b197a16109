"""A remedy: one change, or one combination of changes, that starts a run which waits; and what a remedy costs.

Cheapest first means, in this order:

1. who has to act: the run's owner on the run as it stands, its owner submitting it again (which costs its age), Budget
   owners, owners of other runs, operators, and last nobody but time;
2. how many objects have to change;
3. the GPUs that it costs: fewer for the run, more in a cap, taken from others, put back to work;
4. the order of the kinds, then the words.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, Final

from planner.advice.edits import Edit


class Who(IntEnum):
    """People who have to act, cheapest first."""

    OWNER = 0
    AGAIN = 1
    BUDGETS = 2
    OTHERS = 3
    OPERATORS = 4
    TIME = 5

    @property
    def words(self) -> str:
        """Name that people have for them."""
        return _WHO[self]


_WHO: Final = {
    Who.OWNER: "the run's owner",
    Who.AGAIN: "the run's owner, submitting it again",
    Who.BUDGETS: "owners of Budgets",
    Who.OTHERS: "owners of other runs",
    Who.OPERATORS: "operators",
    Who.TIME: "nobody",
}

KINDS: Final = (
    "sponsor", "end", "again", "spread", "groups", "pods", "borrow", "limit", "selector", "flavor", "spares",
    "narrower", "opportunistic", "cap", "terms", "free", "node", "wait", "combination",
)  # fmt: skip
"""Every kind of remedy, in the order in which equally cheap ones are named."""


CHANGING: Final = frozenset({"spec.state", "spec.malleable.desiredTotalGPUs", "spec.funding.sponsors"})
"""Fields of a Run that may change once it is there (spec §1)."""

SELECTOR: Final = "spec.locality.selector"
"""The field of a Run with the labels that its nodes must have."""


@dataclass(frozen=True)
class Change:
    """A field of an object that is to have another value. ``subject``: ``Run namespace/name``, ``Budget name``, …"""

    subject: str
    field: str
    value: Any


@dataclass(frozen=True)
class Command:
    """Words to type: of `kubectl runs`, about a run in its ``namespace``; without one, of kubectl itself."""

    words: str
    namespace: str = ""

    def typed(self, reach: str = "") -> str:
        """The whole line; ``reach``: options that name the cluster, with a blank after them."""
        if not self.namespace:
            return f"kubectl {self.words}"
        return f"kubectl runs {reach}-n {self.namespace} {self.words}"


@dataclass(frozen=True, eq=False)
class Remedy:
    """A confirmed way to start a run.

    ``gpus``: what it costs (see the module); ``words``: a clause; ``changes``: fields to be written, where it is that;
    ``commands``: what to type, where there are commands for all of it; ``nodes``: where GPUs are to be freed, how many;
    ``at``: when the run starts, if not at once (Unix seconds); ``edits``: the same on the snapshot, as planned.
    """

    kind: str
    who: Who
    gpus: int
    words: str
    changes: tuple[Change, ...] = ()
    commands: tuple[Command, ...] = ()
    nodes: tuple[tuple[str, int], ...] = ()
    at: int | None = None
    edits: tuple[Edit, ...] = field(default=(), repr=False)

    @property
    def cost(self) -> tuple[int, int, int, int, str]:
        """Sorts cheapest first."""
        return int(self.who), max(1, len(self.changes)), self.gpus, KINDS.index(self.kind), self.words

    @property
    def how(self) -> str:
        """Instruction for people."""
        return typed(self.commands) or written(self.changes)


def label_of(field: str, key: str) -> str:
    """A label's place in a field of labels; in brackets, as the keys of labels have dots of their own."""
    return f'{field}["{key}"]'


def typed(commands: Iterable[Command], reach: str = "") -> str:
    """Commands as one line for a shell; ``reach``: as in `Command.typed`."""
    return " && ".join(command.typed(reach) for command in commands)


def written(changes: Iterable[Change]) -> str:
    """Fields to be written, by object."""
    fields: dict[str, list[Change]] = {}
    for change in changes:
        fields.setdefault(change.subject, []).append(change)
    return "; ".join(_written(subject, found) for subject, found in fields.items())


def _written(subject: str, changes: list[Change]) -> str:
    """Fields of one object; a Run that is there does not change in most, and its name stays taken."""
    said = ", ".join(f"{change.field}: {plain(change.value)}" for change in changes)
    again = subject.startswith("Run ") and any(change.field not in CHANGING for change in changes)
    return f"cancel {subject}, and submit it under another name with {said}" if again else f"{subject}: {said}"


def plain(value: Any) -> str:
    """A value as it stands in a manifest; None: the field is to be left out."""
    if value is None:
        return "(left out)"
    if isinstance(value, bool):
        return str(value).lower()
    return f"[{', '.join(str(each) for each in value)}]" if isinstance(value, list | tuple) else str(value)
