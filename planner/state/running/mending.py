"""Repair of runs on failed nodes (spec §7): groups on their standbys, malleable runs without the groups that they lost.

    fixed run        every lost pod has a standby of its group, or the run ends as one that lost a node
    malleable run    groups without standbys go; it ends where less than its least width would be left

Unfunded work on the slots of a standby is reclaimed; where funded work is there, the standby is none.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from msgspec.structs import replace

from jobtree.api.kinds.lease import ClosureReason
from jobtree.api.values.counted import counted
from planner.placement.room import Foreign, Room
from planner.state.running.failing import Failing, Held, Mending, groups_dropped
from planner.state.running.standbys import Standby, Tenant, Want, reclaimed, standbys_of, taken
from policies.inputs.claims import UNFUNDED, LeaseKey, LeaseRow, RunKey
from policies.inputs.runs import RunRow
from policies.lifecycle.endings import Ending


def mended(world: Failing, foreign_of: Callable[[Held], Mapping[str, Foreign]]) -> Mending:
    """The cheapest repair of all failures together. ``foreign_of``: what pods without a lease use beside leases."""
    hit = [key for key, ending in world.endings.items() if ending.reason == "NodeFailure" and not ending.lack]
    hit = [key for key in hit if world.is_well(world.runs[key], _gone(world, key))]
    if not hit:
        return Mending({}, [], dict(world.endings))
    shut: set[tuple[RunKey, str]] = set()
    pressed = _pressed(world, foreign_of)
    while True:
        mend = _Mend(world, shut, pressed)
        for key in hit:
            mend.look(key)
        mend.settle()
        crowded = mend.crowded(foreign_of)
        both = [key for key in hit if key in mend.fallen]
        if not crowded and not both:
            return mend.mending()
        shut |= crowded
        hit = [key for key in hit if key not in both]


def _pressed(world: Failing, foreign_of: Callable[[Held], Mapping[str, Foreign]]) -> dict[str, int]:
    """GPUs of leased slots, by node, that are there no more or that pods without a lease use."""
    staying = {key: mine for key, mine in world.held.items() if not _ends(world, key)}
    slots: dict[str, set[int]] = {}
    for lease in (each for mine in staying.values() for each in mine if each.place not in world.lost):
        slots.setdefault(lease.node, set()).update(lease.ordinals)
    others, fleet = foreign_of(staying), world.fleet
    found = {}
    for name in slots.keys() & fleet.index.keys():
        other = others.get(name, Foreign())
        over = len(slots[name] | other.slots) + other.gpus - int(fleet.gpus[fleet.index[name]])
        if over > 0:
            found[name] = over
    return found


def _ends(world: Failing, key: RunKey) -> bool:
    """Does it end whatever is repaired?"""
    return key in world.endings and world.endings[key].reason != "NodeFailure"


def _gone(world: Failing, key: RunKey) -> set[str]:
    return {lease.node for lease in world.held[key] if lease.place in world.lost}


@dataclass
class _Mend:
    """One try. ``shut``: nodes whose CPU, memory or GPUs are not enough for a run's pods; ``pressed``: see `_pressed`;
    ``wants``: groups to be repaired of runs that live on; ``dropped``: groups that go of these; ``used``: standbys by
    group; ``fallen``: tenants that go; ``missing``: slots of standbys that have no GPU.
    """

    world: Failing
    shut: set[tuple[RunKey, str]]
    pressed: Mapping[str, int]
    wants: list[Want] = field(default_factory=list)
    declined: list[LeaseRow] = field(default_factory=list)
    dropped: dict[RunKey, set[int]] = field(default_factory=dict)
    used: dict[tuple[RunKey, int], list[Standby]] = field(default_factory=dict)
    fallen: dict[RunKey, set[int]] = field(default_factory=dict)
    missing: set[tuple[str, int]] = field(default_factory=set)

    def look(self, key: RunKey) -> None:
        """Does a run that lost a node live on, and how?"""
        world, run = self.world, self.world.runs[key]
        leases = world.held[key]
        missing: dict[int, int] = {}
        for lease in leases:
            if lease.active and lease.place in world.lost:
                missing[lease.group] = missing.get(lease.group, 0) + lease.gpus
        wants = [self._want(run, group, missing[group]) for group in sorted(missing)]
        lacking = [want for want in wants if not want.is_met]
        dropped = groups_dropped(run, leases, {want.group for want in lacking})
        self.declined += [lease for want in lacking for lease in want.squatted]
        if dropped is not None:
            self.dropped[key] = dropped
            self.wants += [want for want in wants if want.is_met and want.group not in dropped]

    def _want(self, run: RunRow, group: int, gpus: int) -> Want:
        """Loss of a group of a run, and what it has for it."""
        world, unit = self.world, run.unit
        mine = [lease for lease in world.held[run.key] if lease.group == group and lease.place not in world.lost]
        spares = [lease for lease in mine if not lease.active]
        want = Want(run.key, group, -(-gpus // unit), [])
        domains = {int(world.fleet.domain[place]) for each in mine if (place := self._node(each)) is not None}
        if len(domains) != 1:
            return want  # labels of its nodes have changed: it would lie in several
        sites = world.sites(run)
        usable: list[LeaseRow] = []
        for lease in spares:
            place = self._node(lease)
            if place is None or not world.fleet.takes_work[place] or (run.key, lease.node) in self.shut:
                continue
            if int(world.fleet.site[place]) in sites:
                usable.append(lease)
        tenants: dict[tuple[str, int], frozenset[Tenant]] = {}
        for lease in usable:
            on = self._on(lease)
            if any(tenant is None for tenant in on.values()):
                want.squatted.append(lease)
            for ordinal in lease.ordinals:
                tenant = on.get(ordinal, ())
                if tenant is not None:
                    tenants[lease.node, ordinal] = frozenset(tenant)
        missing = self._missing(tenants)
        self.missing |= missing
        tenants = {slot: there for slot, there in tenants.items() if slot not in missing}
        want.standbys = standbys_of(usable, unit, tenants)
        return want

    def _missing(self, tenants: Mapping[tuple[str, int], frozenset[Tenant]]) -> set[tuple[str, int]]:
        """Slots of a group's standbys, on which ``tenants`` are, without GPUs: that vanished, or that pods without a
        lease use, the last ones free; all of a node where these are not enough for those.
        """
        fleet, found = self.world.fleet, set[tuple[str, int]]()
        for name in {node for node, _ in tenants}:
            mine = sorted(slot for slot in tenants if slot[0] == name)
            gone = [slot for slot in mine if slot[1] >= int(fleet.gpus[fleet.index[name]])]
            free = [slot for slot in mine if slot not in gone and not tenants[slot]]
            used = max(0, self.pressed.get(name, 0) - len(gone))
            found.update(gone, free[len(free) - used :] if used <= len(free) else mine)
        return found

    def _node(self, lease: LeaseRow) -> int | None:
        return self.world.fleet.index.get(lease.node)

    def _on(self, spare: LeaseRow) -> dict[int, tuple[Tenant, ...] | None]:
        """Tenants of a spare's slots, by ordinal; none where it ends in any case, None where it may not be asked."""
        found: dict[int, tuple[Tenant, ...] | None] = {}
        for lease in self._active.get(spare.node, ()):
            for ordinal in set(lease.ordinals).intersection(spare.ordinals):
                run = self.world.runs.get(lease.run_key)
                if _ends(self.world, lease.run_key):
                    found[ordinal] = ()
                elif run is None or lease.funding_class != UNFUNDED or lease.run_key in self.world.unsure:
                    found[ordinal] = None
                else:
                    found[ordinal] = (Tenant(lease.run_key, lease.group if run.malleable else -1),)
        return found

    @cached_property
    def _active(self) -> Mapping[str, list[LeaseRow]]:
        found: dict[str, list[LeaseRow]] = {}
        for lease in (lease for mine in self.world.held.values() for lease in mine):
            if lease.active:
                found.setdefault(lease.node, []).append(lease)
        return found

    def settle(self) -> None:
        """Choose standbys for all groups together."""
        there = {tenant for want in self.wants for standby in want.standbys for tenant in standby.tenants}
        gpus = {tenant: sum(lease.gpus for lease in self._leases(tenant)) for tenant in sorted(there)}
        gone = reclaimed(self.wants, gpus, self.world.nodes)
        for want in self.wants:
            self.used[want.run, want.group] = taken(want, gone)
        used = {t for mine in self.used.values() for standby in mine for t in standby.tenants}
        for tenant in sorted(used):
            self.fallen.setdefault(tenant.run, set()).add(tenant.group)

    def _leases(self, tenant: Tenant) -> Iterator[LeaseRow]:
        held = self.world.held[tenant.run]
        return (each for each in held if each.active and tenant.group in (-1, each.group))

    def crowded(self, foreign_of: Callable[[Held], Mapping[str, Foreign]]) -> set[tuple[RunKey, str]]:
        """Runs and nodes where GPUs, CPU, memory or the count of pods are not enough for what would come there."""
        if not self.used:
            return set()
        closing, gone = self._closing(), self._whole_tenants() | (self.world.endings.keys() - self.dropped.keys())
        staying = {
            key: [lease for lease in mine if lease.key not in closing]
            for key, mine in self.world.held.items()
            if key not in gone
        }
        room = Room(self.world.fleet)
        room.occupy((each for mine in staying.values() for each in mine), self.world.runs, foreign_of(self.world.held))
        gpus = [len(slots) - lost for slots, lost in zip(room.slots, room.lost, strict=True)]
        for swap in self._swaps():
            gpus[self.world.fleet.index[swap.node]] -= swap.gpus
        found: set[tuple[RunKey, str]] = set()
        for (key, _), standbys in self.used.items():
            run = self.world.runs[key]
            load = run.load
            for name in sorted({each.node for each in standbys}):
                node = self.world.fleet.index[name]
                pods = sum(each.node == name for each in standbys) if run.pod else 1
                room.cpu[node] -= pods * load.cpu_milli
                room.memory[node] -= pods * load.memory
                room.pods[node] -= pods
                if (
                    gpus[node] < 0
                    or room.pods[node] < 0
                    or (load.cpu_milli and room.cpu[node] < 0)
                    or (load.memory and room.memory[node] < 0)
                ):
                    found.add((key, name))
        return found

    def _whole_tenants(self) -> set[RunKey]:
        """Tenants of which nothing is left."""
        return {key for key, groups in self.fallen.items() if self._falls(key, groups)}

    def _falls(self, key: RunKey, groups: set[int]) -> bool:
        run = self.world.runs[key]
        return -1 in groups or groups_dropped(run, self.world.held[key], groups) is None

    def _closing(self) -> dict[LeaseKey, ClosureReason]:
        """Leases that end of runs that live on, and spares that were declined."""
        found: dict[LeaseKey, ClosureReason] = {lease.key: "SwapDeclined" for lease in self.declined}
        for key, dropped in self.dropped.items():
            for lease in self.world.held[key]:
                if lease.place in self.world.lost or lease.group in dropped:
                    found.setdefault(lease.key, "NodeFailure")
        for standbys in self.used.values():
            found.update((lease.key, "Swap") for standby in standbys for lease in standby.leases)
        for key, groups in self.fallen.items():
            if not self._falls(key, groups):
                gone = groups_dropped(self.world.runs[key], self.world.held[key], groups) or set()
                found.update((each.key, "ReclaimedBySpare") for each in self.world.held[key] if each.group in gone)
        return found

    def mending(self) -> Mending:
        """Mending that comes of it."""
        endings = {key: ending for key, ending in self.world.endings.items() if key not in self.dropped}
        for key in sorted(self._whole_tenants()):
            run = self.world.runs[key]
            gpus = sum(lease.gpus for lease in self.world.held[key] if lease.active)
            words = f"Its {counted(gpus, 'unfunded GPU')} lay on spares that were needed."
            endings[key] = Ending("" if run.requeue else "Failed", "ReclaimedBySpare", self.world.at, words)
        return Mending(self._closing(), [*self._swaps()], dict(sorted(endings.items())))

    def _swaps(self) -> Iterator[LeaseRow]:
        """New leases: Active ones on the standbys, Spare ones on what is left of their leases."""
        for (key, group), standbys in sorted(self.used.items()):
            slots: dict[LeaseKey, set[int]] = {}
            spares: dict[LeaseKey, LeaseRow] = {}
            for standby in standbys:
                for ordinal, lease in zip(standby.ordinals, standby.leases, strict=True):
                    slots.setdefault(lease.key, set()).add(ordinal)
                    spares[lease.key] = lease
            parts = [(spares[name], slots[name], True) for name in sorted(spares)]
            parts += [(spares[name], rest, False) for name, rest in sorted(self._rest(key, group, spares, slots))]
            parts = [part for part in parts if part[1]]
            for number, (spare, ordinals, active) in enumerate(_merged(parts)):
                yield replace(
                    spare,
                    name=f"{key[1]}-{self.world.cycle.lower()}-g{group}-{number}",
                    node_uid=self.world.fleet.uids[self.world.fleet.index[spare.node]],
                    ordinals=tuple(sorted(ordinals)),
                    active=active,
                    start=self.world.at,
                    segments=(),
                )

    def _rest(
        self, key: RunKey, group: int, spares: Mapping[LeaseKey, LeaseRow], slots: Mapping[LeaseKey, set[int]]
    ) -> Iterator[tuple[LeaseKey, set[int]]]:
        """Rest of spare leases as whole standbys, on GPUs that are still there."""
        fleet, unit = self.world.fleet, self.world.runs[key].unit
        kept = [each for each in self.world.held[key] if each.group == group and not each.active]
        for node in sorted({lease.node for lease in spares.values()}):
            there = range(int(fleet.gpus[fleet.index[node]]))
            mine = sorted(name for name, lease in spares.items() if lease.node == node)
            left = [(slot, name) for name in mine for slot in spares[name].ordinals if slot in there]
            left = [(slot, name) for slot, name in left if (node, slot) not in self.missing]
            left = sorted((slot, name) for slot, name in left if slot not in slots[name])
            beside = sum(each.gpus for each in kept if each.node == node and each.key not in spares)
            left = left[: max(0, len(left) - (len(left) + beside) % unit)]
            yield from ((name, {slot for slot, whose in left if whose == name}) for name in mine)


def _merged(parts: Iterable[tuple[LeaseRow, set[int], bool]]) -> list[tuple[LeaseRow, set[int], bool]]:
    """Parts of one node, role and payer together."""
    found: dict[tuple[str, bool, str, str], tuple[LeaseRow, set[int], bool]] = {}
    for spare, ordinals, active in parts:
        key = spare.node, not active, spare.budget, spare.envelope_name
        found.setdefault(key, (spare, set(), active))[1].update(ordinals)
    return [found[key] for key in sorted(found, key=lambda key: (key[1], key[0], key[2:]))]
