"""Slots: each GPU once, and only GPUs that are there and free (spec §2, §9 slot-exclusive).

What the snapshot already shows is the cluster's to repair; the plan answers for what it adds.
"""

from collections import defaultdict
from collections.abc import Iterator
from typing import TypeAlias

from jobtree.api.values.counted import counted
from jobtree.check.case.case import Case, split_slot
from jobtree.check.case.rows import Held
from jobtree.check.case.violation import Violation
from jobtree.check.money.classes import Present

Slot: TypeAlias = tuple[str, int]


def violations(case: Case, present: Present) -> Iterator[Violation]:
    """Form of the slots, exclusiveness, and room on their nodes."""
    yield from _form(case)
    yield from _exclusive(case, present)
    yield from _unread(case)
    yield from _room(case)


def _form(case: Case) -> Iterator[Violation]:
    for lease in case.plan.leases:
        subject = f"Lease {lease.namespace}/{lease.name}"
        slots = [split_slot(text) for text in lease.spec.slice.nodes]
        nodes = sorted({slot[0] for slot in slots if slot is not None})
        if len(nodes) > 1:
            yield Violation("one-node", subject, f"it spans {counted(len(nodes), 'node')}, {', '.join(nodes)}")
        if len(set(slots)) < len(slots):
            yield Violation("slot-exclusive", subject, f"it names a slot twice: {', '.join(lease.spec.slice.nodes)}")
        for text, slot in zip(lease.spec.slice.nodes, slots, strict=True):
            node = case.nodes.get(slot[0]) if slot is not None else None
            if slot is None or node is None or slot[1] >= node.gpus:
                there = f"{node.name} has {counted(node.gpus, 'GPU')}" if node else "there is no such node"
                yield Violation("slot-exists", subject, f"slot {text} does not exist: {there}")
            elif lease.spec.slice.node_uid != (node.uid or ""):
                told = f"it names uid {lease.spec.slice.node_uid or '(none)'}, and that of {node.name} is {node.uid}"
                yield Violation("slot-exists", subject, told)
                break


def _exclusive(case: Case, present: Present) -> Iterator[Violation]:
    """One open Active and one open Spare lease per slot; together only where the Active one is unfunded."""
    new_slots = [(slot, lease) for lease in case.new for slot in lease.slots]
    wanted = {slot for slot, _ in new_slots}
    holders: dict[Slot, list[Held]] = defaultdict(list)
    for lease in case.held:
        for slot in lease.slots:
            if slot in wanted:
                holders[slot].append(lease)
    for slot, lease in new_slots:
        for other in holders[slot]:
            if lease is not other and not _share(case, lease, other, present):
                yield Violation.of_lease(
                    "slot-exclusive",
                    lease.key,
                    f"slot {slot[0]}#{slot[1]} is held by {other.namespace}/{other.name} ({other.role}) already",
                )
        holders[slot].append(lease)


def _unread(case: Case) -> Iterator[Violation]:
    """Slots of Leases that cannot be read are taken."""
    holders = {slot: each for each in case.rows.unread for slot in each.slots}
    for lease in case.new:
        for slot in lease.slots:
            if slot in holders:
                other = holders[slot]
                sentence = f"slot {slot[0]}#{slot[1]} is held by {other.namespace}/{other.name}, which cannot be read"
                yield Violation.of_lease("slot-exclusive", lease.key, sentence)


def _share(case: Case, one: Held, other: Held, present: Present) -> bool:
    if one.role == other.role:
        return False
    active = one if one.active else other
    runs_unfunded = active.key in case.leases and present.classes[active.key] == "unfunded"
    return active.payer is None or runs_unfunded


def _room(case: Case) -> Iterator[Violation]:
    """Leased slots and the GPUs of pods that are not ours (or whose lease is closed) fit what the node offers."""
    fresh = {lease.node for lease in case.new}
    taken: dict[str, set[int]] = defaultdict(set)
    for lease in (*case.held, *case.new):
        if lease.node in fresh:
            taken[lease.node].update(lease.ordinals)
    for each in case.rows.unread:
        for name, ordinal in each.slots:
            if name in fresh and name in case.nodes and ordinal < case.nodes[name].gpus:
                taken[name].add(ordinal)
    others = case.without_lease
    for name in sorted(fresh):
        node = case.nodes.get(name)
        if node is not None and len(taken[name]) + others.get(name, 0) > node.gpus:
            yield Violation(
                "slot-free",
                f"Node {name}",
                f"{counted(len(taken[name]), 'GPU is', 'GPUs are')} leased, "
                f"{others.get(name, 0)} used by pods without a lease,"
                f" of {node.gpus}",
            )
