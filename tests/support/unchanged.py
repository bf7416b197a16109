"""A snapshot whose world is the one that the last cycle left."""

from dataclasses import replace

from jobtree.world.memory.seen import World
from jobtree.world.tables import rows
from jobtree.world.tables.given import given_of
from jobtree.world.tables.snapshot import Snapshot


def unchanged(snapshot: Snapshot, at: int, since: int | None) -> Snapshot:
    """The snapshot with a record that nothing has changed ``since`` then (Unix seconds); None: as it is."""
    if since is None:
        return snapshot
    told = rows.seen_world(World(given_of(snapshot, at), since))
    return replace(snapshot, tables={**snapshot.tables, "seen_world": told})
