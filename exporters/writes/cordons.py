"""Cordons of failed nodes, and their end once a node is healthy again (spec §7).

Nothing is remembered but the annotation that Jobtree's own cordon has: what a person cordoned is never touched. A node
is cordoned that leases close for, and any other that has failed, unless more fall silent at once than are believed
(spec §2); what a person cordoned already is none of these.
"""

from collections.abc import Iterator

from jobtree.api.kinds.base import ANNOTATION_CORDONED
from jobtree.api.kinds.core import Node
from jobtree.api.kinds.policy import PolicySpec
from jobtree.api.values.scalars import Time
from jobtree.cluster.protocol import Ref, Write
from jobtree.world.plan import Plan
from jobtree.world.reading.intake import Intake
from jobtree.world.tables.rows import OUT_OF_SERVICE
from policies.lifecycle.failures import is_believed, is_silent


def cordons(intake: Intake, plan: Plan, policy: PolicySpec) -> Iterator[Write]:
    """The patches of nodes, in the order of their names."""
    closed = {(each.namespace, each.name) for each in plan.closures if each.reason == "NodeFailure"}
    left = {lease.spec.node for lease in intake.leases if (lease.namespace, lease.name) in closed}
    open_ = [node for node in intake.nodes if not node.spec.unschedulable]
    out = {node.metadata.name for node in open_ if _is_out(node)}
    silent = {node.metadata.name for node in open_ if _is_silent(node, policy, plan.at)} - out
    believed = is_believed(len(silent), len(intake.nodes), policy)
    failed = out | (silent if believed else silent & left)
    for node in sorted(intake.nodes, key=lambda node: node.metadata.name):
        name = node.metadata.name
        if name in failed:
            yield _patch(name, cordon=str(Time(plan.at)))
        elif _is_ours(node) and _is_healthy(node):
            yield _patch(name, cordon=None)


def _patch(name: str, *, cordon: str | None) -> Write:
    body = {
        "metadata": {"annotations": {ANNOTATION_CORDONED: cordon}},
        "spec": {"unschedulable": True if cordon else None},
    }
    return Write("patch", Ref("Node", "", name), body)


def _is_ours(node: Node) -> bool:
    return ANNOTATION_CORDONED in node.metadata.annotations


def _is_out(node: Node) -> bool:
    return any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints or ())


def _is_healthy(node: Node) -> bool:
    """Is it Ready and in service? One written by hand without any conditions is."""
    ready = not node.status.conditions if node.ready is None else node.ready.status == "True"
    return ready and not _is_out(node) and node.metadata.deletion_timestamp is None


def _is_silent(node: Node, policy: PolicySpec, at: int) -> bool:
    ready = node.ready
    since = None if ready is None or ready.status == "True" else ready.last_transition_time
    return since is not None and is_silent(since, policy, at)
