"""Pruning: which closed leases go, and what the balances keep of them (spec §3.6, Policy.retention.leases).

A lease goes at the first whole hour at which it has been closed for longer than the retention (or, where that is less
than an hour, at the first whole multiple of it), the oldest first. It stays while its figures are still asked for:

    by a tree of runs with a quota of GPU-hours that its run is in
    by a run that follows its run, where that is not there any more (spec §7: it stays Completed)
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from jobtree.api.kinds.policy import PolicySpec
from jobtree.api.values.scalars import HOUR
from jobtree.world.memory import balances
from jobtree.world.memory.balances import Account, Span, Title, accounts_of, place_of
from jobtree.world.tables import values as col
from jobtree.world.tables.rows import set_aside
from policies.funding.ledger import weighed
from policies.inputs.claims import ACTIVE, SPARE, UNFUNDED, LeaseRow, RunKey
from policies.inputs.money import Money
from policies.inputs.runs import RunRow
from policies.lifecycle.follow import followed

AT_ONCE: Final = 1000
"""Most leases that go in one cycle: their names are kept until the next ones go, at most 340 bytes each."""


def closed_by(policy: PolicySpec, at: int) -> int:
    """Leases that ended at this second or before have been kept long enough."""
    keep = int(policy.retention.leases)
    step = min(HOUR, max(1, keep))
    return (at - keep) // step * step


def due(
    leases: Iterable[LeaseRow],
    runs: Mapping[RunKey, RunRow],
    policy: PolicySpec,
    at: int,
    quarantine: pa.Table,
) -> list[LeaseRow]:
    """The leases that go at ``at``, in the order of their ends.

    None where a part of the balances cannot be read, or nothing may be written.
    """
    if policy.mode == "observe" or _broken(quarantine):
        return []
    last = closed_by(policy, at)
    old = [lease for lease in leases if lease.closed and lease.ended is not None and lease.ended <= last]
    if not old:
        return []
    asked = followed(runs)
    free = [
        (lease.ended, lease.key, lease)
        for lease in old
        if not _counts_in_tree(runs, lease.run_key) and lease.run_key not in asked
    ]
    return [lease for _, _, lease in sorted(free, key=lambda each: each[:2])[:AT_ONCE]]


def _broken(quarantine: pa.Table) -> bool:
    """Is a part of the balances among what cannot be read?"""
    return any(balances.number_of(*place) is not None for place in set_aside(quarantine, "ConfigMap"))


def _counts_in_tree(runs: Mapping[RunKey, RunRow], key: RunKey) -> bool:
    """Is a run in a tree with a quota of GPU-hours?"""
    above: set[RunKey] = set()
    run = runs.get(key)
    while run is not None and run.key not in above:
        if run.quota_gpu_milliseconds is not None:
            return True
        above.add(run.key)
        run = runs.get((run.namespace, run.parent)) if run.parent else None
    return False


def settled(leases: Iterable[LeaseRow], money: Money, nodes: pa.Table) -> list[Account]:
    """Sum up what these leases were charged, as the balances keep it."""
    mine = [lease for lease in leases if lease.budget]
    places = _places({lease.node for lease in mine}, money, nodes)
    return list(accounts_of(charge for lease in mine for charge in _charges(lease, money, places.get(lease.node, ""))))


def _charges(lease: LeaseRow, money: Money, place: str) -> Iterator[tuple[Title, Span]]:
    for name, since, until, rate in lease.segments:
        if name == UNFUNDED:
            continue
        title = Title(
            budget=lease.budget,
            envelope=lease.envelope_name,
            owner=lease.owner,
            run_owner=lease.run_owner,
            flavor=lease.flavor,
            funding_class=name,
            role=ACTIVE if lease.active else SPARE,
            lent=lease.lent,
            place=place,
            rate_milli=rate or 0,
        )
        end = lease.ended if until is None else until
        for span in weighed(money.discounts, lease, since, since if end is None else end):
            yield title, span


def _places(names: set[str], money: Money, nodes: pa.Table) -> dict[str, str]:
    """Node → its labels that envelopes ask for; nodes that are gone have none that is known."""
    selectors = [*(envelope.selector for envelope in money.envelopes), *(use.selector for use in money.uses)]
    asked = sorted({key for selector in selectors for key, _ in selector})
    there = nodes.filter(pc.is_in(nodes["name"], value_set=pa.array(sorted(names), pa.string())))
    labels = zip(col.texts(there, "name"), col.column(there, "labels"), strict=True)
    return {name: place_of(dict(mine), asked) for name, mine in labels}
