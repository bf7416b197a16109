"""Victims: what may be cut of each running run, as plain values (spec §6)."""

from collections.abc import Collection, Container, Iterable, Iterator
from typing import NamedTuple

from planner.state.state import State
from policies.cuts.protection import Protection
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
        """GPUs of the group."""
        return self.lent + sum(gpus for _, gpus in self.slots)


class Spare(NamedTuple):
    """Standby leases that go together: parts of a standby, where payers share it, go only whole. ``gpus``: those on
    which nobody works.
    """

    keys: tuple[LeaseKey, ...]
    group: int
    node: int
    gpus: int


class Victim(NamedTuple):
    """A run that holds leases. ``surplus``: Active GPUs above its least width; ``start``: Unix seconds; ``losable``:
    may all of it be cut, as it is unfunded (``unfunded``) or may be drawn? ``step``: GPUs by which it may shrink, 0
    where it may not; ``pod``: of its pods, 0 where chunks.
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
    step: int = 0
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
        """Active GPUs of the run."""
        return sum(group.gpus for group in self.groups)

    @property
    def undrawn(self) -> "Victim":
        """The same where it may not be drawn."""
        return self._replace(losable=self.unfunded)


class Spared(NamedTuple):
    """Who is not drawn: runs of ``owners``, and who was not ``warned``, if that is asked for."""

    owners: frozenset[str] = frozenset()
    warned: Collection[RunKey] | None = None


def victims_of(
    state: State, owners: Collection[str], *, opportunistic: bool = False, cut: Container[LeaseKey] = ()
) -> list[Victim]:
    """All that may be cut for runs of ``owners``, by run; ``opportunistic``: only what is unfunded by its own choice;
    ``cut``: leases that go already.
    """
    there = protected(state, opportunistic=opportunistic, cut=cut)
    return open_at(there, owners, state.protection, state.at)


def protected(state: State, *, opportunistic: bool = False, cut: Container[LeaseKey] = ()) -> list[Victim]:
    """The same as long as nobody may be drawn, with what has nothing to give then."""
    found = []
    for run, leases in cuttable(state):
        if not opportunistic or run.opportunistic:
            victim = _victim(state, run, [lease for lease in leases if lease.key not in cut])
            found += [victim] if victim.unfunded or not opportunistic else []
    return found


def open_at(there: Iterable[Victim], owners: Collection[str], protection: Protection, at: int) -> list[Victim]:
    """Those that have something to give for runs of ``owners`` at a time (Unix seconds), some of them drawn."""
    found = []
    for each in there:
        victim = each
        if not each.losable and each.groups and protection.is_drawable(each.owner, each.start, owners, at):
            victim = each._replace(losable=True)
        frees = any(group.slots for group in victim.groups)
        if victim.spares or (frees and (victim.losable or any(group.droppable for group in victim.groups))):
            found.append(victim)
    return found


def protected_until(there: Iterable[Victim], owners: Collection[str], protection: Protection, at: int) -> list[int]:
    """Times after ``at`` at which one comes to be drawable for one of ``owners``, ascending, each once."""
    times = {protection.open_after(victim.start) for victim in there if victim.owner not in owners}
    return sorted(time for time in times if time > at)


def cuttable(state: State) -> Iterator[tuple[RunRow, list[LeaseRow]]]:
    """Runs that hold leases which may close, by key: all but those that cannot be read, or are paid by a Budget that
    cannot, or are just being repaired.
    """
    mended = {lease.run_key for lease in state.swapped}
    for key in sorted(state.held.keys() - mended):
        run, leases = state.runs.get(key), state.held[key]
        if run is None or key in state.standing or key in state.unread.runs or state.unread.lease_of(run) is not None:
            continue
        if not any(is_frozen(lease) or lease.budget in state.money.quarantined for lease in leases):
            yield run, leases


def _victim(state: State, run: RunRow, leases: list[LeaseRow]) -> Victim:
    active: dict[int, list[LeaseRow]] = {}
    for lease in leases:
        if lease.active:
            active.setdefault(lease.group, []).append(lease)
    width = sum(lease.gpus for mine in active.values() for lease in mine)
    surplus = max(0, width - run.width_min)
    groups = tuple(_group(state, run, index, active[index], surplus) for index in sorted(active))
    unfunded = bool(groups) and all(group.unfunded for group in groups)
    spares = tuple(_spares(state, run, leases))
    start = started(run, leases) or 0
    step = run.step or 0
    return Victim(
        run.key, run.uid, run.owner, surplus, start, groups, spares, unfunded, unfunded, step, run.pod, run.load
    )


def _spares(state: State, run: RunRow, leases: Iterable[LeaseRow]) -> Iterator[Spare]:
    """Each standby lease by itself; those of a group on a node together where one is no whole standbys."""
    by_place: dict[tuple[int, str], list[LeaseRow]] = {}
    for lease in sorted(leases, key=lambda each: each.key):
        if not lease.active and lease.node in state.fleet.index:
            by_place.setdefault((lease.group, lease.node), []).append(lease)
    for (group, node), mine in by_place.items():
        are_whole = all(lease.gpus % run.unit == 0 for lease in mine)
        for together in [[lease] for lease in mine] if are_whole else [mine]:
            gpus = sum((node, slot) not in state.lent for lease in together for slot in lease.ordinals)
            if gpus:
                yield Spare(tuple(lease.key for lease in together), group, state.fleet.index[node], gpus)


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
