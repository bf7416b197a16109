"""Which nodes have failed (spec §2): deleted, tainted out of service, or NotReady longer than ``notReadyAfter``.

When more than max(1, ``maxFraction`` of all) nodes would newly fail by NotReady at once, none does. The snapshot does
not say which failed before; what failed before holds nothing any more, so between "holding something" and "all" there
is room: nodes in it may, but need not, be treated as failed.
"""

from collections.abc import Iterator
from fractions import Fraction

from jobtree.api.scalars import exact
from jobtree.check.case import Case
from jobtree.check.violation import Violation


class Failures:
    """``surely``: nodes whose leases must close now; ``perhaps``: nodes whose leases may close for NodeFailure."""

    def __init__(self, case: Case) -> None:
        holding = {lease.node for lease in case.open}
        lost = {name for name in holding if name not in case.nodes and ("Node", "", name) not in case.quarantined}
        gone = lost | {name for name in holding if name in case.nodes and case.nodes[name].out_of_service}
        after = int(case.policy.failure.not_ready_after)
        silent = {
            node.name
            for node in case.nodes.values()
            if not node.ready and node.not_ready_since is not None and case.at - node.not_ready_since > after
        } - gone
        allowed = max(Fraction(1), exact(case.policy.failure.max_fraction) * len(case.nodes))
        self.surely = gone | (silent & holding if len(silent) <= allowed else set())
        self.perhaps = gone | (silent & holding if len(silent & holding) <= allowed else set())


def violations(case: Case, failures: Failures) -> Iterator[Violation]:
    """What lies on a failed node closes in the cycle that sees it (spec §7)."""
    for lease in case.held:
        if lease.node in failures.surely:
            sentence = f"it stays open on node {lease.node}, which has failed"
            yield Violation.of_lease("node-failure", lease.key, sentence)
