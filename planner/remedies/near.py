"""The part of a world that anything about one run can touch: all else could as well not be there.

Runs of two flavors never want the same node or envelope (spec §2, §3.1). They meet only where a cap, a quota or a gang
takes flavors together; then, with all that these meet in turn, they are near. What waits or runs in the other flavors
is left out of the snapshot, and a plan of the rest is what it was.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa

from jobtree.world.memory.seen import World
from jobtree.world.naming.arrays import index_name
from jobtree.world.tables import rows, schema, values
from jobtree.world.tables.columns import canonical
from jobtree.world.tables.given import given_of
from jobtree.world.tables.snapshot import Snapshot
from planner.advice.edits import suspended
from planner.state.state import State
from policies.inputs.claims import RunKey


def near(snapshot: Snapshot, state: State, key: RunKey) -> Snapshot:
    """The snapshot without runs and leases of flavors that are not near the run ``key``. ``state``: of the snapshot."""
    flavors = _together(_meetings(state), state.runs[key].flavor)
    mine = {name for name, run in state.runs.items() if run.is_cpu or run.flavor in flavors}
    upstream = {(name[0], run) for name in mine for run in state.runs[name].follow}
    mine |= {name for name in upstream if name in state.runs and state.runs[name].outcome}
    runs, leases = snapshot.tables["runs"], snapshot.tables["leases"]
    tables = {
        **_of_runs(snapshot.tables, (name in mine for name in values.keys(runs))),
        "leases": _only(leases, (flavor in flavors for flavor in values.texts(leases, "flavor")), schema.LEASES),
    }
    return _as_old(replace(snapshot, tables=tables), state)


def without(snapshot: Snapshot, state: State, gone: Collection[RunKey]) -> Snapshot:
    """The snapshot without ``gone``, some of its runs that wait; those on which a tree hangs are suspended.

    ``state``: of the snapshot, or of one of which it is a part.
    """
    runs = state.runs
    parents = {(run.namespace, run.parent) for run in runs.values() if run.parent}
    roots = {key for key in gone if key in parents or runs[key].has_quota}
    mask = (name in roots or name not in gone for name in values.keys(snapshot.tables["runs"]))
    kept = replace(snapshot, tables=_of_runs(snapshot.tables, mask))
    return _as_old(suspended(kept, roots), state)


def _as_old(part: Snapshot, whole: State) -> Snapshot:
    """``part`` of a snapshot, with the world no newer than in the ``whole``: what is left out has not changed it."""
    record = rows.seen_world(World(given_of(part, whole.at), whole.changed))
    return replace(part, tables={**part.tables, "seen_world": record})


def _of_runs(tables: Mapping[str, pa.Table], mask: Iterable[bool]) -> dict[str, pa.Table]:
    """The tables with the runs of the mask alone; arrays show the indices that are left."""
    runs, found = _only(tables["runs"], mask, schema.RUNS), tables["arrays"]
    left = set(values.keys(runs))
    shown = [
        [index for index in indices if (space, index_name(name, index)) in left]
        for (space, name), indices in zip(values.keys(found), values.column(found, "shown"), strict=True)
    ]
    at = found.schema.get_field_index("shown")
    arrays = found.set_column(at, found.schema.field(at), pa.array(shown, found.schema.field(at).type))
    arrays = _only(arrays, (key in left for key in values.keys(arrays)), schema.ARRAYS)
    return {**tables, "runs": runs, "arrays": arrays}


def _meetings(state: State) -> Iterator[set[str]]:
    """Flavors that something takes together."""
    envelopes, fleet = state.money.envelopes, state.fleet
    for cap in state.book.caps:
        yield {envelopes[e].flavor for e in cap.pool.envelopes}
    on = dict(zip(fleet.names, fleet.flavor, strict=True))
    places = {(lease.run_key, lease.flavor, on.get(lease.node, ""), lease.envelope) for lease in state.leases}
    for key, flavor, node, envelope in places:
        ran = state.runs[key].flavor if key in state.runs else ""
        yield {ran, flavor, node, envelopes[envelope].flavor if envelope >= 0 else ""}
    for tree in state.quotas():
        yield {state.runs[key].flavor for key in tree.members}
    gangs: dict[tuple[str, str], set[str]] = {(run.namespace, run.gang): set() for run in state.pending if run.gang}
    for run in state.runs.values():  # a member that has started counts for those that wait
        if (run.namespace, run.gang) in gangs:
            gangs[run.namespace, run.gang].add(run.flavor)
    yield from gangs.values()


def _together(meetings: Iterable[set[str]], flavor: str) -> set[str]:
    """All that ``flavor`` meets, and all that these meet in turn."""
    found = {flavor}
    links = sorted({frozenset(each - {""}) for each in meetings}, key=sorted)
    while any(link & found and not link <= found for link in links):
        found = found.union(*(link for link in links if link & found))
    return found


def _only(table: pa.Table, mask: Iterable[bool], fields: pa.Schema) -> pa.Table:
    return canonical(table.filter(pa.array(list(mask), pa.bool_())), fields)
