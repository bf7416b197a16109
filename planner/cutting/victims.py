"""Victims: what may be cut of each running run, as plain values (spec §6)."""

from collections.abc import Collection, Container, Iterator
from typing import NamedTuple

from planner.state.state import State
from policies.cuts.protection import is_drawable, open_from
from policies.funding.frozen import is_frozen
from policies.inputs.claims import UNFUNDED, LeaseKey, LeaseRow, RunKey
from policies.inputs.runs import RunRow
from policies.inputs.shapes import NO_LOAD, PodLoad
from policies.lifecycle.endings import started

Slots = tuple[tuple[int, int], ...]
"""(node, GPUs) pairs, by node."""


class Group(NamedTuple):
    """Active GPUs of one group. ``slots``: those that are free once it goes; ``lent``: those on standbys;
    ``droppable``: may it go alone, where the run stays above its least width?
    """

    number: int
    slots: Slots
    unfunded: bool
    droppable: bool
    lent: int = 0

    @property
    def gpus(self) -> int:
        """How many."""
        return self.lent + sum(gpus for _, gpus in self.slots)


class Spare(NamedTuple):
    """A standby lease. ``gpus``: those on which nobody works."""

    key: LeaseKey
    group: int
    node: int
    gpus: int


class Victim(NamedTuple):
    """A run that holds leases. ``surplus``: Active GPUs above its least width; ``start``: Unix seconds; ``losable``:
    may all of it be cut, as it is unfunded (``unfunded``) or may be drawn? ``pod``: GPUs of its pods, 0 where chunks.
    """

    run: RunKey
    uid: str
    owner: str
    surplus: int
    start: int
    groups: tuple[Group, ...]
    spares: tuple[Spare, ...]
    unfunded: bool
    losable: bool
    pod: int = 0
    load: PodLoad = NO_LOAD

    def slots(self) -> Iterator[tuple[int, int]]:
        """(node, GPUs) of all that might go of it."""
        for group in self.groups:
            if self.losable or group.droppable:
                yield from group.slots
        yield from ((spare.node, spare.gpus) for spare in self.spares)

    def pods(self, gpus: int) -> int:
        """Pods of so many Active GPUs of a group on a node."""
        return -(-gpus // self.pod) if self.pod else 1

    @property
    def gpus(self) -> int:
        """Its width."""
        return sum(group.gpus for group in self.groups)

    @property
    def undrawn(self) -> "Victim":
        """The same where it may not be drawn."""
        return self._replace(losable=self.unfunded)


def victims_of(
    state: State,
    owners: Collection[str],
    *,
    at: int | None = None,
    opportunistic: bool = False,
    cut: Container[LeaseKey] = (),
) -> list[Victim]:
    """All that may be cut for runs of ``owners``, by run; ``at``: a later time at which more may be drawn;
    ``opportunistic``: only what is unfunded by its own choice; ``cut``: leases that go already.
    """
    term = int(state.policy.lottery.term)
    when = state.at if at is None else at
    found = []
    for run, leases in cuttable(state):
        if opportunistic and not run.opportunistic:
            continue
        left = [lease for lease in leases if lease.key not in cut]
        victim = _victim(state, run, left, drawable=is_drawable(run, leases, owners, term, when))
        if opportunistic and not victim.unfunded:
            continue
        frees = any(group.slots for group in victim.groups)
        if victim.spares or (frees and (victim.losable or any(group.droppable for group in victim.groups))):
            found.append(victim)
    return found


def protected_until(state: State, owners: Collection[str]) -> list[int]:
    """Times after now at which a run comes to be drawable for one of ``owners``, ascending, each once."""
    term = int(state.policy.lottery.term)
    times = {open_from(run, leases, term) for run, leases in cuttable(state) if run.owner not in owners}
    return sorted(time for time in times if time > state.at)


def cuttable(state: State) -> Iterator[tuple[RunRow, list[LeaseRow]]]:
    """Runs that hold leases which may close, by key: all but those that cannot be read, or are paid by a Budget that
    cannot, or are just being repaired.
    """
    mended = {lease.run_key for held in state.held.values() for lease in held if lease.key in state.swaps}
    for key in sorted(state.held.keys() - mended):
        run, leases = state.runs.get(key), state.held[key]
        if run is None or key in state.standing or key in state.unread.runs or state.unread.lease_of(run) is not None:
            continue
        if not any(is_frozen(lease) or lease.budget in state.money.quarantined for lease in leases):
            yield run, leases


def _victim(state: State, run: RunRow, leases: list[LeaseRow], *, drawable: bool) -> Victim:
    active: dict[int, list[LeaseRow]] = {}
    for lease in leases:
        if lease.active:
            active.setdefault(lease.group, []).append(lease)
    width = sum(lease.gpus for mine in active.values() for lease in mine)
    surplus = max(0, width - run.width_min)
    groups = tuple(_group(state, run, index, active[index], surplus) for index in sorted(active))
    unfunded = bool(groups) and all(group.unfunded for group in groups)
    spares = tuple(
        Spare(lease.key, lease.group, state.fleet.index[lease.node], gpus)
        for lease in sorted(leases, key=lambda each: each.key)
        if not lease.active
        and lease.node in state.fleet.index
        and (gpus := sum((lease.node, slot) not in state.lent for slot in lease.ordinals))
    )
    start = started(run, leases) or 0
    losable = bool(groups) and (unfunded or drawable)
    return Victim(run.key, run.uid, run.owner, surplus, start, groups, spares, unfunded, losable, run.pod, run.load)


def _group(state: State, run: RunRow, index: int, leases: list[LeaseRow], surplus: int) -> Group:
    slots: dict[int, int] = {}
    lent = 0
    for lease in leases:
        node = state.fleet.index.get(lease.node)
        if node is not None:
            on = sum((lease.node, slot) in state.lent for slot in lease.ordinals)
            lent += on
            slots[node] = slots.get(node, 0) + lease.gpus - on
    unfunded = all(state.funded.classes[lease.key] == lease.funding_class == UNFUNDED for lease in leases)
    droppable = run.malleable and sum(lease.gpus for lease in leases) <= surplus and (bool(run.group) or index > 0)
    return Group(index, tuple(sorted((n, gpus) for n, gpus in slots.items() if gpus)), unfunded, droppable, lent)
