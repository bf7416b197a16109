"""What a cycle changed where a promise by cuts looks for its room (spec §5).

Whom the least harm meets hangs on what runs and what is free on the nodes that the run may use. As long as a plan
begins, ends and turns nothing there that could be cut by the time of the promise, no older promise by cuts ends, nobody
was given a place since the last cycle in a domain where those lie that it names, and the ground is the same (`ground`),
it names the same runs with the same chances: it is not weighed again.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final

from jobtree.world.memory.cycles import Moment
from planner.dates.writing import Written
from policies.inputs.claims import UNFUNDED, LeaseRow, RunKey
from policies.promises.rules import Promise

AT_ONCE: Final = 0
"""Before any promise, Unix seconds."""


class Touched:
    """Changes of a plan, and of those who changed the world before it; ``held``: promises that stand, by run, and
    ``since``: the last cycle, Unix seconds. ``over``: promises that end.
    """

    def __init__(self, written: Written, held: Mapping[RunKey, Promise], since: int | None) -> None:
        """Nothing is looked at before it is asked for."""
        self.plan = written.plan
        self.state = written.state
        self.ground = written.ground
        self.over = tuple(written.over)
        self.held = held
        self.since = since

    def reaches(self, promise: Promise) -> bool:
        """Is anything new in question for a promise by cuts, or one that it names gone?"""
        return self.changes(promise) or not self._given.isdisjoint(self._named_domains(promise))

    def _named_domains(self, promise: Promise) -> frozenset[int]:
        leases = (lease for key in promise.warned for lease in self.state.held.get(key, ()))
        return self._domains(lease.node for lease in leases)

    def changes(self, promise: Promise) -> bool:
        """The same, whatever places were promised or taken."""
        run, policy = self.state.runs[promise.run_key], self.state.policy
        forecast = promise.told.forecast
        named = {each.run for each in forecast.conflict_set} if forecast is not None else set()
        if policy.mode == "noCuts" or not named <= self._running:
            return True
        if forecast is None or forecast.ground != self.ground.of(promise.run_key):
            return True
        sites = self.state.sites_for(run)
        return any(site in sites and since <= promise.start for site, since in self._sites.items())

    @cached_property
    def _given(self) -> frozenset[int]:
        """Domains in which this plan starts something, or places were promised since the last cycle without cuts."""
        begun = self._domains(lease.spec.node for lease in self.plan.leases)
        at = self.since
        if at is None:
            return begun
        made = Moment(at, 1).name.lower()
        fresh = (
            each
            for each in self.held.values()
            if not each.is_by_cuts and (made in each.name or any(move.at >= at for move in each.told.history[-1:]))
        )
        return begun | self._domains(node for each in fresh for node in each.nodes)

    def _domains(self, nodes: Iterable[str]) -> frozenset[int]:
        fleet = self.state.fleet
        return frozenset(int(fleet.domain[fleet.index[node]]) for node in nodes if node in fleet.index)

    @cached_property
    def _running(self) -> frozenset[str]:
        return frozenset("/".join(key) for key in self.state.held)

    @cached_property
    def _sites(self) -> dict[int, int]:
        """Unix seconds, by site, from which on something new on the nodes of a site may be cut, or is free."""
        found: dict[int, int] = {}
        for node, since in self._changes():
            place = self.state.fleet.index.get(node)
            if place is not None:
                site = int(self.state.fleet.site[place])
                found[site] = min(since, found.get(site, since))
        return found

    def _changes(self) -> Iterator[tuple[str, int]]:
        """(node, Unix seconds)."""
        plan = self.plan
        named = {(each.namespace, each.name) for each in plan.closures}
        named |= {(each.namespace, each.name) for each in plan.segments}
        yield from ((each.node, AT_ONCE) for each in self.state.leases if each.key in named)
        spared = {each.run for promise in self.over if (told := promise.told.forecast) for each in told.conflict_set}
        for key, leases in self.state.held.items():
            if "/".join(key) in spared:
                yield from ((lease.node, AT_ONCE) for lease in leases)
        begun = {lease.run_key for lease in plan.leases}
        for key in sorted(begun & self.state.held.keys()):
            since = self._cuttable_from(key)
            yield from ((lease.node, since) for lease in self.state.held[key])

    def _cuttable_from(self, key: RunKey) -> int:
        """Time at which a run that began or changed may lose anything: at once, or when its protection ends."""
        run, leases = self.state.runs[key], self.state.held[key]
        protected = not run.malleable and all(_is_funded_work(lease) for lease in leases)
        return self.state.protection.open_from(run, leases) if protected else AT_ONCE


def _is_funded_work(lease: LeaseRow) -> bool:
    return lease.active and lease.funding_class != UNFUNDED
