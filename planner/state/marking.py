"""Labels beside those of the cluster: what holds a node, and which starts have nodes of their own."""

from collections.abc import Iterator

import msgspec
import pyarrow as pa

from jobtree.world.tables import values as col
from jobtree.world.tables.columns import replaced
from policies.cuts.order import Cuts
from policies.inputs.maintenance import HELD
from policies.inputs.runs import RunRow
from policies.promises.holds import Holds


def pinned(run: RunRow, cuts: Cuts) -> RunRow:
    """The run, asking for its own nodes where it has some."""
    if run.key not in cuts.pins:
        return run
    return msgspec.structs.replace(run, selector=tuple(sorted((*run.selector, (cuts.label(run.key), "")))))


def marked(nodes: pa.Table, holds: Holds, cuts: Cuts) -> pa.Table:
    """Nodes with a label for what holds them, and one for each start that is to be there."""
    wanted: dict[str, list[tuple[str, str]]] = {}
    for name, label in _labels(holds, cuts):
        wanted.setdefault(name, []).append(label)
    if not wanted:
        return nodes
    labels = col.column(nodes, "labels")
    cells = {
        i: sorted([*map(tuple, labels[i]), *wanted[name]])
        for i, name in enumerate(col.texts(nodes, "name"))
        if name in wanted
    }
    return replaced(nodes, "labels", cells)


def _labels(holds: Holds, cuts: Cuts) -> Iterator[tuple[str, tuple[str, str]]]:
    """(node, label)."""
    yield from ((name, (HELD, hold.value)) for name, hold in holds.whole.items())
    yield from ((name, (cuts.label(key), "")) for key, names in cuts.pins.items() for name in names)
