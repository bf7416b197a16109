"""Every row of a snapshot that the checker reads, and what follows from rows alone (see `jobtree.check.case.rows`)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import pyarrow as pa

from jobtree.api.kinds.run import RunStatus
from jobtree.check.case.accounts import Account, Aggregate, Budget, Discount, Envelope, Rate, UseCap
from jobtree.check.case.rows import (
    Array,
    Held,
    LeaseKey,
    Node,
    Pod,
    Quarantined,
    Reservation,
    Run,
    RunKey,
    Unread,
    by_run,
)
from jobtree.world.tables import values
from jobtree.world.tables.records import read
from jobtree.world.tables.rows_runs import status_in
from jobtree.world.tables.snapshot import Snapshot


class World(NamedTuple):
    """A row of ``seen_world``: what a cycle was given, and since when that is so."""

    given: str
    changed: int


class Seen(NamedTuple):
    """The tables ``seen_…``: the money as the last cycle saw it, and what it was given; ``world``: at most one row."""

    budgets: list[Budget]
    envelopes: list[Envelope]
    aggregates: list[Aggregate]
    use_caps: list[UseCap]
    rates: list[Rate]
    discounts: list[Discount]
    world: list[World]


@dataclass(frozen=True, slots=True)
class Rows:
    """Every row that the checker reads: all of its work that needs no plan, and can be done before there is one.

    ``node``, ``run``, ``lease``: the same rows by name; ``open_by``: open leases by run; ``statuses``: those that
    Runs have; ``indices``: runs that are indices, by their name the array's and the number.
    """

    nodes: list[Node]
    pods: list[Pod]
    budgets: list[Budget]
    envelopes: list[Envelope]
    aggregates: list[Aggregate]
    use_caps: list[UseCap]
    runs: list[Run]
    arrays: list[Array]
    leases: list[Held]
    balances: list[Account]
    reservations: list[Reservation]
    quarantine: list[Quarantined]
    unread: list[Unread]
    seen: Seen
    node: Mapping[str, Node]
    run: Mapping[RunKey, Run]
    lease: Mapping[LeaseKey, Held]
    open_by: Mapping[RunKey, list[Held]]
    statuses: Mapping[RunKey, RunStatus]
    indices: Mapping[RunKey, tuple[str, int]]
    _sites: dict[tuple[str, ...], Mapping[str, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, snapshot: Snapshot) -> Self:
        """The rows of a snapshot, each list in the order of its table."""
        tables = snapshot.tables
        nodes, runs, leases = read(tables["nodes"], Node), read(tables["runs"], Run), read(tables["leases"], Held)
        arrays = read(tables["arrays"], Array)
        rows = cls(
            nodes=nodes,
            pods=read(tables["pods"], Pod),
            budgets=read(tables["budgets"], Budget),
            envelopes=_envelopes(tables["envelopes"], tables["budgets"]),
            aggregates=read(tables["aggregates"], Aggregate),
            use_caps=read(tables["use_caps"], UseCap, owner=_owners(tables["use_caps"], tables["budgets"])),
            runs=runs,
            arrays=arrays,
            indices={(array.namespace, f"{array.name}-{i}"): (array.name, i) for array in arrays for i in array.shown},
            leases=leases,
            balances=read(tables["balances"], Account),
            reservations=read(tables["reservations"], Reservation),
            quarantine=read(tables["quarantine"], Quarantined),
            unread=read(tables["unread"], Unread),
            seen=Seen(
                budgets=read(tables["seen_budgets"], Budget),
                envelopes=_envelopes(tables["seen_envelopes"], tables["seen_budgets"]),
                aggregates=read(tables["seen_aggregates"], Aggregate),
                use_caps=read(
                    tables["seen_use_caps"], UseCap, owner=_owners(tables["seen_use_caps"], tables["seen_budgets"])
                ),
                rates=read(tables["seen_rates"], Rate),
                discounts=read(tables["seen_discounts"], Discount),
                world=read(tables["seen_world"], World),
            ),
            node={node.name: node for node in nodes},
            run={run.key: run for run in runs},
            lease={lease.key: lease for lease in leases},
            open_by=by_run(lease for lease in leases if not lease.closed),
            statuses=_statuses(runs),
        )
        rows.sites(rows.envelopes, rows.use_caps)
        return rows

    def sites(self, envelopes: Iterable[Envelope], use_caps: Iterable[UseCap]) -> Mapping[str, int]:
        """By node the number of its site: nodes that none of the envelopes and use caps tells apart, by flavor or a
        label that it asks for.
        """
        selectors = [*(each.selector for each in envelopes), *(cap.selector for cap in use_caps)]
        asked = tuple(sorted({key for selector in selectors for key, _ in selector}))
        if asked not in self._sites:
            numbers: dict[tuple[str | None, ...], int] = {}
            found = {}
            for node in self.nodes:
                labels = dict(node.labels)
                alike = (node.flavor, *(labels.get(key) for key in asked))
                found[node.name] = numbers.setdefault(alike, len(numbers))
            self._sites[asked] = found
        return self._sites[asked]


def _envelopes(envelopes: pa.Table, budgets: pa.Table) -> list[Envelope]:
    return read(envelopes, Envelope, owner=_owners(envelopes, budgets))


def _owners(bounds: pa.Table, budgets: pa.Table) -> list[str]:
    """Owners of the Budgets that envelopes or use caps are of."""
    owner_of = {budget.name: budget.owner for budget in read(budgets, Budget)}
    return [owner_of[name] for name in values.column(bounds, "budget")]


def _statuses(runs: Iterable[Run]) -> dict[RunKey, RunStatus]:
    """Of Runs that have one."""
    told = {run.key: run.status for run in runs if run.status is not None}
    known = {text: status_in(text) for text in set(told.values())}  # many runs wait with the very same words
    return {key: known[text] for key, text in told.items()}
