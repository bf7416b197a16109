"""Which nodes have failed (spec §2): deleted, tainted out of service, or NotReady longer than ``notReadyAfter``.

When more than max(1, ``maxFraction`` of all) nodes would newly fail by NotReady at once, none does. The snapshot does
not say which failed before; what failed before holds nothing any more, so between "holding something" and "all" there
is room: nodes in it may, but need not, be treated as failed.

A lease that tells the uid of its node lies on that very node: where the one of that name has another uid, its own was
deleted.

What surely outlives them, or the loss of a tenant's slots, is the least that a plan must leave:

    fixed run        all of it, where every group has a whole standby for each pod that it lost
    malleable run    the widest width on a step, of at least its least, without the groups that have none

Only standbys that are usable beyond doubt count here, so a plan may repair more than this, and none less.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from fractions import Fraction
from functools import cached_property
from typing import TypeAlias

from jobtree.api.values.scalars import exact
from jobtree.check.case.case import Case
from jobtree.check.case.rows import Held, Run, RunKey
from jobtree.check.case.unplanned import Unplanned
from jobtree.check.case.violation import Violation
from jobtree.check.life.eligibility import refusals

Slots: TypeAlias = dict[str, set[int]]
"""Ordinals by node."""


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
    """What lies on a failed node closes in the cycle that sees it; a Run that cannot be read keeps it (spec §7)."""
    for lease in case.held:
        if failures.is_sure(lease) and ("Run", *lease.run_key) not in case.quarantined:
            sentence = f"it stays open on node {lease.node}, which has failed"
            yield Violation.of_lease("node-failure", lease.key, sentence)


class Outliving:
    """Of one plan: what it must leave of runs that lose something, and what it needs not take."""

    def __init__(self, case: Case, failures: Failures) -> None:
        self.case = case
        self.failures = failures

    @cached_property
    def tenants(self) -> dict[tuple[str, int], list[Held]]:
        """Active leases that were open, by slot."""
        found: dict[tuple[str, int], list[Held]] = defaultdict(list)
        for lease in self.case.open:
            for ordinal in lease.ordinals if lease.active else ():
                found[lease.node, ordinal].append(lease)
        return found

    def kept(self, key: RunKey) -> int:
        """Active GPUs that a run goes on with, without what it grows by."""
        mine = (each for each in self.case.after(key) if each.active)
        return sum(each.gpus for each in mine if each.reason != "Grow" or each.key in self.case.leases)

    def least(self, key: RunKey) -> int:
        """Active GPUs that it must be left with after nodes failed; 0 where it may end, or nothing can be told."""
        run, leases = self.case.run_of(key), self.case.open_by.get(key, [])
        if run is None or self._is_other(key, run, leases):
            return 0
        lost = {each.group for each in leases if each.active and self.failures.may_be(each)}
        return self.width_without(run, leases, {group for group in lost if not self._is_whole(run, leases, group)})

    def _is_other(self, key: RunKey, run: Run, leases: list[Held]) -> bool:
        """Does more happen to it than that a node failed, or may it be anybody's tenant?"""
        said = self.case.told.said.get(key)
        return (
            bool(self.case.told.over[key])
            or self.case.told.lacking[key]
            or self.case.may_be_unread(run)
            or (said is not None and (said.failed or said.stuck))
            or any(map(self.was_unfunded, leases))
            or any(each.key in self.case.closing and self.case.closing[each.key].made_room_for for each in leases)
        )

    @staticmethod
    def width_without(run: Run, leases: list[Held], lost: Collection[int]) -> int:
        """The Active GPUs on which a run goes on that loses these groups; 0 where it does not."""
        left = sum(each.gpus for each in leases if each.active and each.group not in lost)
        if not lost:
            return left
        if run.min_total is None or (not run.group and 0 in lost):
            return 0
        left -= (left - run.min_total) % (run.step or 1)
        return left if left >= run.min_total else 0

    def _is_whole(self, run: Run, leases: list[Held], group: int) -> bool:
        """Has a group a whole standby for each pod that it lost, beyond doubt?"""
        unit = run.pod or 1
        mine = [each for each in leases if each.group == group]
        lost = sum(each.gpus for each in mine if each.active and self.failures.may_be(each))
        places = {self.case.nodes[each.node].place for each in mine if self._stands(each)}
        if len(places) != 1 or run.pod_cpu_milli or run.pod_memory:
            return False
        slots = self._usable(run, mine, lost)
        return sum(len(ordinals) // unit for ordinals in slots.values()) * unit >= lost

    def _stands(self, lease: Held) -> bool:
        return lease.node in self.case.nodes and not self.failures.may_be(lease)

    def _usable(self, run: Run, leases: list[Held], pods: int) -> Slots:
        """Slots of standbys whose nodes take work of the run, ``pods`` more too, and that are free or may be freed."""
        found: Slots = defaultdict(set)
        for lease in leases:
            if lease.active or not self._stands(lease) or self.is_pressed(lease.node):
                continue
            node = self.case.nodes[lease.node]
            if any(True for _ in refusals(self.case, run.key, run, node)):
                continue
            if node.max_pods is not None and self._pods_on(lease.node) + pods > node.max_pods:
                continue
            found[lease.node].update(
                ordinal
                for ordinal in lease.ordinals
                if ordinal < node.gpus and all(map(self._may_go, self.tenants.get((lease.node, ordinal), ())))
            )
        return found

    def is_pressed(self, node: str) -> bool:
        """Do pods without a lease use GPUs of leased slots there, or are there fewer GPUs?"""
        leased = {slot for each in self.case.open if each.node == node for slot in each.slots}
        return len(leased) + self.case.without_lease.get(node, 0) > self.case.nodes[node].gpus

    def _pods_on(self, node: str) -> int:
        """No fewer than the pods on a node: leases have at most one for each GPU."""
        leased = sum(each.gpus for each in self.case.open if each.active and each.node == node)
        return leased + sum(pod.node == node for pod in self.case.pods)

    def _may_go(self, tenant: Held) -> bool:
        """May it be reclaimed for a swap?"""
        run = self.case.run_of(tenant.run_key)
        return run is not None and not self.case.may_be_unread(run) and self.was_unfunded(tenant)

    def was_unfunded(self, lease: Held) -> bool:
        """Did nobody pay for it until now?"""
        return lease.payer is None or self.case.recorded(lease) == "unfunded"

    def is_declined(self, spare: Held) -> bool:
        """Is somebody's work on its slots that may not be reclaimed, and does not end for itself?"""
        there = (each for slot in spare.slots for each in self.tenants.get(slot, ()))
        return any(not self._may_go(each) and self._stays(each) for each in there)

    def _stays(self, lease: Held) -> bool:
        closure = self.case.closing.get(lease.key)
        return closure is None or closure.reason == "NodeFailure"

    def is_needless(self, lost: list[Held]) -> bool:
        """Could every swap onto slots of these tenants' leases have used free standbys of its own group instead?"""
        there = {slot for each in lost if each.active for slot in each.slots}
        swaps = [new for new in self.case.new if new.reason == "Swap" and new.active]
        groups: dict[tuple[RunKey, int], Slots] = defaultdict(lambda: defaultdict(set))
        for new in swaps:
            on = {ordinal for ordinal in new.ordinals if (new.node, ordinal) in there}
            if on:
                groups[new.run_key, new.group][new.node] |= on
        return bool(groups) and all(self._has_more(*group, slots) for group, slots in groups.items())

    def _has_more(self, key: RunKey, group: int, slots: Slots) -> bool:
        """Does a group leave as many free standbys unused as it uses of these slots?"""
        run = self.case.run_of(key)
        if run is None or run.pod_cpu_milli or run.pod_memory:
            return False
        unit = run.pod or 1
        mine = [each for each in self.case.open_by.get(key, ()) if each.group == group]
        taken: Slots = defaultdict(set)
        for new in self.case.new_by[key]:
            if new.reason == "Swap" and new.active and new.group == group:
                taken[new.node].update(new.ordinals)
        needed = sum(-(-len(on) // unit) for on in slots.values())
        spare = 0
        for node, usable in self._usable(run, mine, needed * unit).items():
            free = {ordinal for ordinal in usable if (node, ordinal) not in self.tenants}
            spare += max(0, len(free) // unit - -(-len(free & taken[node]) // unit))
        return spare >= needed
