"""Nodes that are submitted to a state file: a fleet of one's own, from nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from jobtree.api import Policy, Time
from jobtree.api.kinds.core import Node
from jobtree.api.values.counted import counted
from jobtree.api.values.errors import Refusal

if TYPE_CHECKING:
    from jobtree.cli.changing.manifests import Manifest
    from jobtree.cluster.protocol import Write
    from jobtree.world.reading.intake import Intake


def joined(intake: Intake, found: Sequence[Manifest]) -> Intake:
    """The cluster with the Nodes and the Policy that are submitted."""
    given = {each.item.metadata.name: each.item for each in found if isinstance(each.item, Node)}
    kept = [node for node in intake.nodes if node.metadata.name not in given]
    policy = next((each.item for each in found if isinstance(each.item, Policy)), intake.policy)
    return replace(intake, nodes=(*kept, *given.values()), policy=policy)


def check(fleet: Intake, found: Sequence[Manifest]) -> list[str]:
    """Warnings of Nodes with GPUs that no cycle plans with. Raises Refusal where a Node's resources cannot be read."""
    from jobtree.world.naming.needs import left_out, of_node

    policy = (fleet.policy or Policy()).spec
    warnings = []
    for each in found:
        if isinstance(each.item, Node):
            try:
                offer = of_node(each.item, policy.resource_names)
            except Refusal as refusal:
                raise refusal.about(each.subject) from None
            label = policy.topology.labels.flavor
            if offer.gpus and not each.item.metadata.labels.get(label):
                warnings.append(f"{each.subject}: {left_out(label)}")
    return warnings


def outcome(before: Node | None, given: Manifest, at: int) -> tuple[str, list[Write]]:
    """kubectl's word for what happens with a Node (``before``: as it is there), and the write that does it.

    It keeps the status, uid and times that it states. What it does not state of uid and creation time is that of the
    one that is there, else what a first sight at ``at`` gives.
    """
    from jobtree.cluster.edits import uid_of
    from jobtree.cluster.protocol import Ref, Write
    from jobtree.world.reading.intake import key_of

    node, metadata = given.item, given.value["metadata"]
    assert isinstance(node, Node)
    name = node.metadata.name
    created = node.metadata.creation_timestamp or (before and before.metadata.creation_timestamp) or Time(at)
    uid = node.metadata.uid or (before and before.metadata.uid) or uid_of(key_of("v1", "Node", "", name), created)
    metadata |= {"creationTimestamp": str(created), "uid": uid}
    stamped = msgspec.structs.replace(node.metadata, creation_timestamp=created, uid=uid)
    if before == msgspec.structs.replace(node, metadata=stamped):
        return "unchanged", []
    return "configured" if before else "created", [Write("replace", Ref("Node", "", name), given.value)]


def said(words: Sequence[tuple[str, str]]) -> list[str]:
    """A line for each word: fleets are large."""
    from exporters.plans.nodelist import compress

    names = defaultdict(list)
    for name, word in words:
        names[word].append(name)
    return [
        f"Node {each[0]} {word}" if len(each) == 1 else f"{counted(len(each), 'Node')} {word}: {compress(each)}"
        for word, each in names.items()
    ]
