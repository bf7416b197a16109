"""Which nodes have failed (spec §2): deleted, tainted out of service, or NotReady longer than ``notReadyAfter``.

When more than max(1, ``maxFraction`` of all) nodes would newly fail by NotReady at once, none does. The snapshot does
not say which failed before; what failed before holds nothing any more, so between "holding something" and "all" there
is room: nodes in it may, but need not, be treated as failed.

A lease that tells the uid of its node lies on that very node: where the one of that name has another uid, its own was
deleted.
"""

from collections.abc import Iterator
from fractions import Fraction

from jobtree.api.values.scalars import exact
from jobtree.check.case.case import Case
from jobtree.check.case.rows import Held
from jobtree.check.case.unplanned import Unplanned
from jobtree.check.case.violation import Violation


class Failures:
    """``surely``: nodes whose leases must close now; ``perhaps``: nodes whose leases may close for NodeFailure;
    ``remade``: leases whose very node is no more.
    """

    def __init__(self, case: Unplanned) -> None:
        held = [lease for lease in case.leases.values() if not lease.closed]
        self.remade = {lease.key for lease in held if _is_remade(case, lease)}
        holding = {lease.node for lease in held if lease.key not in self.remade}
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

    def is_sure(self, lease: Held) -> bool:
        """Whether the lease lies on a node that has failed."""
        return lease.key in self.remade or lease.node in self.surely

    def may_be(self, lease: Held) -> bool:
        """Whether it may be taken for such."""
        return lease.key in self.remade or lease.node in self.perhaps


def _is_remade(case: Unplanned, lease: Held) -> bool:
    node = case.nodes.get(lease.node)
    return node is not None and None not in (node.uid, lease.node_uid) and node.uid != lease.node_uid


def violations(case: Case, failures: Failures) -> Iterator[Violation]:
    """What lies on a failed node closes in the cycle that sees it (spec §7)."""
    for lease in case.held:
        if failures.is_sure(lease):
            sentence = f"it stays open on node {lease.node}, which has failed"
            yield Violation.of_lease("node-failure", lease.key, sentence)
