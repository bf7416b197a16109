"""Holds of a promise: nodes kept for runs alone that surely end before it starts (spec §5, held slices).

A hold is a kind of maintenance: the node has no capacity for others from the promised time on,

    a run may use a held node  ⇔  the promise is its own  or  at + time limit ≤ promised start
                               or  it is due, and the promise counts on its end

Where a promise leaves a part of a node's free slots, that part is everybody's and the rest nobody's until then.
Money is held likewise: `policies.promises.funds`.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from jobtree.api.kinds.policy import Maintenance, PolicySpec
from jobtree.api.values.scalars import Time
from policies.inputs.claims import RunKey
from policies.inputs.fleet import Selector
from policies.inputs.maintenance import HELD
from policies.promises import funds
from policies.promises.funds import Held

FOR_GOOD: Final = Time(253_402_300_799)
"""After all times: the last second that RFC 3339 can say."""


class Hold(NamedTuple):
    """A node that a promise leaves nothing of from ``start`` on; ``by``: runs promised there, and due
    ones whose ends these count on, sorted.
    """

    start: int
    by: tuple[RunKey, ...]

    @property
    def value(self) -> str:
        """The label's value: promises that hold from the same time for the same runs are told alike."""
        return f"{self.start} {' '.join('/'.join(key) for key in self.by)}"

    @property
    def selector(self) -> Selector:
        """The label as maintenance selects it."""
        return ((HELD, self.value),)


class Promised(NamedTuple):
    """Runs with a promise: ``all``, those that are ``due`` to start by now, in the order of their promises, and those
    of them that may start ``unfunded`` where nobody pays (Policy `reservations.onBudgetShortfall`). ``nodes``: on which
    they are promised.
    """

    all: frozenset[RunKey]
    due: tuple[RunKey, ...]
    unfunded: frozenset[RunKey] = frozenset()
    nodes: Mapping[RunKey, tuple[str, ...]] = {}


NOBODY: Final = Promised(frozenset(), ())


class Holds(NamedTuple):
    """``whole``: node → hold; ``part``: node → free slots that are nobody's until a promise starts there; ``money``:
    what of it is nobody's until then.
    """

    whole: Mapping[str, Hold]
    part: Mapping[str, int]
    promised: Promised
    money: Held

    def within(self, policy: PolicySpec) -> PolicySpec:
        """The Policy with every hold as a maintenance window of its nodes."""
        windows = tuple(
            Maintenance(selector=dict(hold.selector), start=Time(hold.start), end=FOR_GOOD)
            for hold in sorted(set(self.whole.values()))
        )
        return msgspec.structs.replace(policy, maintenance=(*policy.maintenance, *windows)) if windows else policy


NOTHING: Final = Holds({}, {}, NOBODY, funds.NOTHING)
