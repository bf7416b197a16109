"""Budgets as the planner sees them: envelopes, owners, and the moment at which they are asked (spec §1 Budget)."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa

from jobtree.api.kinds.budget import listed
from jobtree.api.kinds.policy import PolicySpec
from jobtree.api.values.scalars import exact
from jobtree.world.naming.kinship import Family, family_of
from jobtree.world.naming.named import PayerName
from jobtree.world.tables import values as col
from jobtree.world.tables.records import read
from jobtree.world.tables.rows import set_aside
from policies.inputs.balances import Balance, Place, matching, read_balances
from policies.inputs.fleet import Fleet, Selector


@dataclass(frozen=True, slots=True)
class _Bound:
    """Common part of envelopes and use caps; money in milli-GPU-seconds and millicredits, times in Unix seconds,
    None = no such bound. Its window is [start, end).
    """

    budget: str
    name: str
    owner: str
    selector: Selector
    max_gpu_milliseconds: int | None
    max_millicredits: int | None
    start: int | None
    end: int | None
    subtree: bool
    per_run_gpus: int | None
    per_run_time: int | None

    @property
    def label(self) -> str:
        """Name that people have for it."""
        return f"{self.budget}/{self.name}"

    def open_at(self, at: int) -> bool:
        """Is its window open?"""
        return (self.start is None or self.start <= at) and (self.end is None or at < self.end)

    def is_too_long(self, limit: int | None) -> bool:
        """Does it refuse a run that lasts so many seconds at most (None: it has no limit)?"""
        return self.per_run_time is not None and (limit is None or limit > self.per_run_time)


@dataclass(frozen=True, slots=True)
class Envelope(_Bound):
    """One envelope."""

    flavor: str
    concurrency: int
    shares: bool
    allow_reservations: bool
    allow_admission: bool
    per_run_default_time: int | None
    lends: bool
    lending_to: tuple[str, ...]
    lending_concurrency: int | None
    lending_gpu_milliseconds: int | None
    lending_duration: int

    def pays_at(self, at: int, told: int | None = None) -> bool:
        """Open, or not yet open but admitting already (``preActivation.allowAdmission``, spec §3.3).

        ``told``: when that is asked, where ``at`` is a time to come: what is not open by then is counted on only where
        it allows that (``preActivation.allowReservations``).
        """
        if self.start is None or self.allow_admission:
            return self.open_at(at) or (self.start is not None and at < self.start)
        return self.open_at(at) and (self.allow_reservations or told is None or self.start <= told)

    def lends_to(self, owner: str) -> bool:
        """Does it lend, and to this owner (spec §3.1)?"""
        return self.lends and listed(owner, self.lending_to)

    def lasts(self, limit: int | None) -> int | None:
        """Seconds that a run of this time limit may last where it pays; one without gets ``perRun.defaultTime``."""
        return self.per_run_default_time if limit is None else limit

    def is_young(self, age: int) -> bool:
        """Does a loan of ``age`` seconds stand before all other claims (spec §3.5)?"""
        return age < self.lending_duration


@dataclass(frozen=True, slots=True)
class Use(_Bound):
    """A use cap of an owner. ``flavor``: None is every one; ``sites``: where it counts, balances' places too."""

    flavor: str | None
    concurrency: int | None
    sites: frozenset[int]

    def is_of(self, flavor: str) -> bool:
        """Does it count GPUs of a flavor?"""
        return self.flavor is None or self.flavor == flavor


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate cap over envelopes (indices into ``Money.envelopes``)."""

    budget: str
    name: str
    envelopes: tuple[int, ...]
    concurrency: int | None
    max_gpu_milliseconds: int | None
    max_millicredits: int | None


Discounts = tuple[tuple[int | None, int], ...]
"""What a spare GPU weighs in thousandths, from which second on (None: from the beginning), in order."""


@dataclass(frozen=True)
class Money:
    """All envelopes in (budget, name) order and the family of owners, as they are at a time, ``at``.

    ``told``: the time of the cycle that asks, which ``at`` comes after where it looks ahead;
    ``households``: the family if owners without an envelope had others below them by path, as use caps have it;
    ``sites``: where each envelope's flavor and selector match; ``pays_on``: where it pays, the same unless
    ``funding.crossLocation`` allows everywhere (spec §3.2); ``region``: per site, the first site that the very same
    envelopes and use caps match, which money cannot tell from it; ``discounts``: of spares, the last one is in force;
    ``balances``: what pruned leases were charged; ``places``: those of their places that each envelope matched.
    """

    at: int
    told: int
    policy: PolicySpec
    envelopes: list[Envelope]
    index: Mapping[PayerName, int]
    aggregates: list[Aggregate]
    uses: list[Use]
    family: Family
    households: Family
    sites: list[frozenset[int]]
    pays_on: list[frozenset[int]]
    region: list[int]
    quarantined: frozenset[str]
    discounts: Discounts
    balances: list[Balance]
    places: list[frozenset[int]]
    namespaces: Mapping[str, tuple[str, ...] | None] = field(default_factory=dict)
    _users: dict[str, int] = field(default_factory=dict, repr=False, compare=False)

    def user_of(self, owner: str) -> int:
        """The use caps that look at runs of an owner, whatever their windows: bit i is that of ``uses[i]``."""
        if owner not in self._users:
            looks = (use.owner == owner or (use.subtree and self._is_below(owner, use.owner)) for use in self.uses)
            self._users[owner] = sum(1 << i for i, looked in enumerate(looks) if looked)
        return self._users[owner]

    def _is_below(self, owner: str, above: str) -> bool:
        return self.family.descends(owner, above) or self.households.descends(owner, above)

    def paid_on(self, envelope: int, shut: int) -> frozenset[int]:
        """Sites where an envelope pays for a run that the use caps of ``shut``, as bits, keep from their nodes."""
        pays_on = self.pays_on[envelope]
        return pays_on.difference(*(self.uses[i].sites for i in bits(shut))) if shut else pays_on

    @cached_property
    def by_flavor(self) -> dict[str, list[int]]:
        """Flavor → its envelopes, in order."""
        found: dict[str, list[int]] = {}
        for i, envelope in enumerate(self.envelopes):
            found.setdefault(envelope.flavor, []).append(i)
        return found

    @cached_property
    def balances_of(self) -> dict[int, list[Balance]]:
        """Envelope → its balances, in order."""
        found: dict[int, list[Balance]] = {}
        for balance in self.balances:
            found.setdefault(balance.envelope, []).append(balance)
        return found

    @cached_property
    def _rates(self) -> dict[str, int]:
        return {flavor: int(1000 * exact(rate)) for flavor, rate in self.policy.credit_rates.items()}

    def rate_milli(self, envelope: int) -> int:
        """Millicredits per GPU-hour of the envelope's flavor."""
        return self._rates.get(self.envelopes[envelope].flavor, 0)


def bits(mask: int) -> Iterator[int]:
    """Numbers of the bits that are set, in order."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def selectors(*tables: pa.Table) -> list[Selector]:
    """The selectors of envelopes and use caps, in row order."""
    return [selector for table in tables for selector in col.column(table, "selector")]


def read_money(
    tables: Mapping[str, pa.Table], policy: PolicySpec, fleet: Fleet, at: int, told: int | None = None
) -> Money:
    """Money of a snapshot at ``at``; ``told``: see `Money`, the same time unless it is given."""
    budgets = tables["budgets"]
    names = col.texts(budgets, "name")
    owners = dict(zip(names, col.texts(budgets, "owner"), strict=True))
    envelopes = _envelopes(tables["envelopes"], owners)
    index = {PayerName(e.budget, e.name, e.owner, e.flavor): i for i, e in enumerate(envelopes)}
    sites = [fleet.sites_matching(e.flavor, e.selector) for e in envelopes]
    anywhere = policy.funding.cross_location == "allow"
    balances, places = read_balances(tables["balances"], index)
    pays_on = [fleet.sites_matching(e.flavor, ()) for e in envelopes] if anywhere else sites
    uses = _uses(tables["use_caps"], owners, fleet, places)
    holders = {envelope.owner for envelope in envelopes}
    family = _family(budgets, owners, holders)
    return Money(
        at=at,
        told=at if told is None else told,
        policy=policy,
        envelopes=envelopes,
        index=index,
        aggregates=_aggregates(tables["aggregates"], envelopes),
        uses=uses,
        family=family,
        households=family if holders == set(owners.values()) else _family(budgets, owners, owners.values()),
        sites=sites,
        pays_on=pays_on,
        region=_regions(fleet.site_count, [*sites, *pays_on, *(use.sites for use in uses)]),
        quarantined=frozenset(name for _, name in set_aside(tables["quarantine"], "Budget")),
        discounts=_discounts(tables["seen_discounts"], policy, at),
        balances=balances,
        places=[matching(places, e.flavor, e.selector) for e in envelopes],
        namespaces=_namespaces(budgets, owners),
    )


def _discounts(seen: pa.Table, policy: PolicySpec, at: int) -> Discounts:
    """Those that cycles have seen, and the Policy's own from now on where it is another one."""
    known = tuple(zip(col.optional_ints(seen, "since"), col.ints(seen, "milli").tolist(), strict=True))
    now = policy.spares.discount_milli
    if not known:
        return ((None, now),)
    return known if known[-1][1] == now else (*known, (at, now))


def _regions(site_count: int, matches: list[frozenset[int]]) -> list[int]:
    first: dict[tuple[int, ...], int] = {}
    return [
        first.setdefault(tuple(i for i, matched in enumerate(matches) if site in matched), site)
        for site in range(site_count)
    ]


def _family(budgets: pa.Table, owners: Mapping[str, str], by_path: Iterable[str]) -> Family:
    named = zip(col.texts(budgets, "name"), col.column(budgets, "parents", nullable=True), strict=True)
    return family_of(((owners[name], parents) for name, parents in named), frozenset(by_path))


def _namespaces(budgets: pa.Table, owners: Mapping[str, str]) -> dict[str, tuple[str, ...] | None]:
    bound: dict[str, tuple[str, ...] | None] = {}
    for name, spaces in zip(col.texts(budgets, "name"), col.column(budgets, "namespaces"), strict=True):
        known = bound.setdefault(owners[name], None)
        if spaces:
            bound[owners[name]] = (*(known or ()), *spaces)
    return bound


def _aggregates(table: pa.Table, envelopes: list[Envelope]) -> list[Aggregate]:
    numbers = {(e.budget, e.name): i for i, e in enumerate(envelopes)}
    members = zip(col.texts(table, "budget"), col.column(table, "envelopes"), strict=True)
    return read(table, Aggregate, envelopes=[tuple(numbers[budget, e] for e in names) for budget, names in members])


def _uses(table: pa.Table, owners: Mapping[str, str], fleet: Fleet, places: Mapping[int, Place]) -> list[Use]:
    asked = list(zip(col.column(table, "flavor", nullable=True), selectors(table), strict=True))
    return read(
        table,
        Use,
        owner=[owners[budget] for budget in col.texts(table, "budget")],
        subtree=[scope == "subtree" for scope in col.texts(table, "scope")],
        sites=[fleet.sites_matching(*each) | matching(places, *each) for each in asked],
    )


def _envelopes(table: pa.Table, owners: Mapping[str, str]) -> list[Envelope]:
    return read(
        table,
        Envelope,
        owner=[owners[budget] for budget in col.texts(table, "budget")],
        subtree=[scope == "subtree" for scope in col.texts(table, "scope")],
        shares=[sharing == "family" for sharing in col.texts(table, "sharing")],
        lends=col.column(table, "lending_allow"),
    )
