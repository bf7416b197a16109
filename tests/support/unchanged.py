"""A snapshot whose world is the one that the last cycle left."""

from dataclasses import replace

from jobtree.world import rows
from jobtree.world.given import given_of
from jobtree.world.seen import World
from jobtree.world.snapshot import Snapshot


def unchanged(snapshot: Snapshot, at: int, since: int | None) -> Snapshot:
    """The snapshot with a record that nothing has changed ``since`` then (Unix seconds); None: as it is."""
    if since is None:
        return snapshot
    told = rows.seen_world(World(given_of(snapshot, at), since))
    return replace(snapshot, tables={**snapshot.tables, "seen_world": told})
