"""Snapshot: what a cycle knows, as columns. With the time it is all that planner and checker see (spec §2, §4)."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, Final

import msgspec
import pyarrow as pa

from jobtree.api import Budget, Lease, Policy, Refusal, Run, enc_hook
from jobtree.world.collector import collector_paused
from jobtree.world.kept import kept
from jobtree.world.memory.balances import LeaseName, Part, whole
from jobtree.world.memory.cycles import number_after
from jobtree.world.memory.lottery import NAME, Chain, Lot
from jobtree.world.memory.seen import Discount, Seen
from jobtree.world.reading.intake import Intake
from jobtree.world.tables import digest, rows, rows_arrays, rows_runs
from jobtree.world.tables.schema import SCHEMA_VERSION, SEEN_BUDGETS, TABLES, WHERE_ROWS

SEEN_BOUNDS: Final = {"envelopes": "seen_envelopes", "aggregates": "seen_aggregates", "use_caps": "seen_use_caps"}
"""Tables of what Budgets bound → the same as the last cycle saw them."""
_BUILT_IN: Final = Policy()
_nodes, _pods, _leases = kept(rows.nodes), kept(rows.pods), kept(rows.leases)
_runs, _reservations = kept(rows_runs.runs), kept(rows.reservations)
"""Tables that grow with the fleet, of tuples of objects; those of before where nobody has changed any."""
SEEN_MONEY: Final = ("seen_budgets", *SEEN_BOUNDS.values(), "seen_rates", "seen_discounts")
"""Tables of what the last cycle saw of the money."""


@dataclass(frozen=True)
class Snapshot:
    """Tables of `schema.TABLES`, each sorted by its key, and the Policy they were read by, which has a spec only.

    ``since``: the time of the last cycle that was carried out, Unix seconds; ``number``: the how-manieth cycle in its
    second this one is. Like the cycle's own time they are inputs of their own, in manifest and Plan, and in no digest:
    they move with the clock alone. So is ``lot``, the secret that it may draw with; it is nowhere else until it has.
    """

    tables: Mapping[str, pa.Table]
    policy: Policy
    since: int | None = None
    number: int = 1
    lot: Lot | None = None
    _digests: dict[str, str] = field(init=False, default_factory=dict, compare=False, repr=False)

    @cached_property
    def table_digests(self) -> Mapping[str, str]:
        """SHA-256 of each table's content, hex."""
        return {name: self.table_digest(name) for name in self.tables}

    def table_digest(self, name: str) -> str:
        """That of one table."""
        return self.digest_of(name, lambda: self.tables[name])

    def digest_of(self, name: str, table: Callable[[], pa.Table]) -> str:
        """That of a table which follows from these; it is made and digested once under its name."""
        if name not in self._digests:
            self._digests[name] = digest.of_table(table(), SCHEMA_VERSION)
        return self._digests[name]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all tables, hex: equal for equal worlds, however their documents were ordered."""
        counted = {
            name: text for name, text in self.table_digests.items() if name not in WHERE_ROWS or len(self.tables[name])
        }
        return digest.of_tables(counted, SCHEMA_VERSION)

    @cached_property
    def policy_digest(self) -> str:
        """SHA-256 of the Policy's spec, hex."""
        return digest_of(self.policy)


def digest_of(policy: Policy) -> str:
    """SHA-256 of the Policy's spec, hex."""
    return hashlib.sha256(policy_json(policy)).hexdigest()


def policy_json(policy: Policy) -> bytes:
    """The Policy's spec as canonical JSON: keys sorted, defaults spelled out, since they are those of this version."""
    return msgspec.json.encode(_spelled_out(policy.spec), enc_hook=enc_hook, order="sorted")


_fields = cache(msgspec.structs.fields)
"""Of a struct's type; each time they are asked for anew, msgspec reads all annotations again."""


def _spelled_out(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return {field.encode_name: _spelled_out(getattr(value, field.name)) for field in _fields(type(value))}
    return [_spelled_out(each) for each in value] if isinstance(value, tuple) else value


def take(intake: Intake, at: int | None = None) -> Snapshot:
    """The snapshot of an intake; labels and resources are read as its Policy, or the built-in one, says.

    ``at``: the second to plan for, where the plan is to be carried out: it may be the second of Plans that are there.
    Raises Refusal where part of the cluster is hidden from who reads.
    """
    if intake.hidden:
        raise Refusal(
            f"that takes the whole cluster, and you may not list {', '.join(intake.hidden)}; ask for the role "
            "jobtree-viewer"
        )
    policy = Policy(spec=intake.policy.spec) if intake.policy else _BUILT_IN  # its metadata and status rule nothing
    with collector_paused():
        since = intake.last_cycle
        number = 1 if at is None else number_after((plan.name for plan in intake.plans), at)
        return Snapshot(_tables(intake, policy), policy, None if since is None else int(since), number)


def _tables(intake: Intake, policy: Policy) -> dict[str, pa.Table]:
    shown = rows_arrays.shown(intake, policy.spec)
    runs = (*intake.runs, *(each for found in shown.values() for each in found))
    return {
        "nodes": _nodes(intake.nodes, policy.spec),
        "pods": _pods(intake.pods, policy.spec),
        "budgets": rows.budgets(intake.budgets),
        **_bounds(intake.budgets),
        "runs": _runs(tuple(sorted(runs, key=_key)) if shown else intake.runs, policy.spec),
        "arrays": rows_arrays.rows(intake, shown),
        "leases": _leases(uncounted(intake)),
        "reservations": _reservations(intake.reservations),
        "quarantine": rows.notices(intake.quarantined),
        "unread": rows.unread(intake.unread),
        "warnings": rows.notices(intake.warnings),
        **_seen(intake.last_seen),
        "seen_world": rows.seen_world(intake.last_world),
        "lottery": rows.lottery(Chain.of(intake.config_map(NAME))),
        "balances": _balances(intake.balances),
    }


@kept
def _balances(parts: Mapping[int, Part]) -> pa.Table:
    return rows.balances(whole([*parts.values()]))


def _key(run: Run) -> tuple[str, str]:
    return run.namespace, run.name


def uncounted(intake: Intake) -> tuple[Lease, ...]:
    """The leases that are not in the balances yet. One that is, and still there, was about to be deleted."""
    counted = {name: ended for part in intake.balances.values() for name, ended in part.counted.items()}
    left = tuple(lease for lease in intake.leases if not is_counted(lease, counted))
    return intake.leases if len(left) == len(intake.leases) else left


def is_counted(lease: Lease, counted: Mapping[LeaseName, int]) -> bool:
    """Whether this very lease is among those ``counted`` in balances."""
    return lease.status.closed and counted.get((lease.namespace, lease.name)) == lease.status.ended


def _seen(found: Seen | None) -> dict[str, pa.Table]:
    if found is None:
        return {name: TABLES[name].empty_table() for name in SEEN_MONEY}
    money = {"budgets": rows.budgets(found.budgets), **_bounds(found.budgets)}
    return seen_tables(money, found.credit_rates, found.discounts)


def _bounds(budgets: Sequence[Budget]) -> dict[str, pa.Table]:
    return {
        "envelopes": rows.envelopes(budgets),
        "aggregates": rows.aggregates(budgets),
        "use_caps": rows.use_caps(budgets),
    }


def seen_tables(
    money: Mapping[str, pa.Table], credit_rates: Mapping[str, int], discounts: Sequence[Discount]
) -> dict[str, pa.Table]:
    """The tables of what a cycle saw of the money; ``money``: the snapshot's own tables of it."""
    return {
        "seen_budgets": money["budgets"].select(SEEN_BUDGETS.names),
        **{name: money[table] for table, name in SEEN_BOUNDS.items()},
        "seen_rates": rows.seen_rates(credit_rates),
        "seen_discounts": rows.seen_discounts(discounts),
    }
