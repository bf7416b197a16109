"""Small busy worlds, cycle after cycle on snapshots: runs arrive and complete, and in some minutes nothing happens.

A script says what happens in which minute, so that an example that fails can be kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
from hypothesis import strategies as st

from jobtree.world.plan import Plan
from jobtree.world.tables import schema, values
from jobtree.world.tables.after import after
from jobtree.world.tables.columns import canonical
from jobtree.world.tables.snapshot import Snapshot
from planner.advice.edits import Cell, edited
from planner.effort import USUAL, Effort
from planner.planning import plan
from tests.reference.worlds import AT, snapshot
from tests.support import documents as doc
from tests.support.drawing import Draw
from tests.support.times import moment

OWNERS: Final = ("org:a", "org:a:x", "org:b")


@dataclass(frozen=True)
class Script:
    """``runs``: documents, each seen first in the minute of its creation; ``ends``: minute → run that completes."""

    fleet: list[doc.Document]
    runs: list[tuple[int, doc.Document]]
    ends: dict[int, str]


@dataclass(frozen=True)
class Played:
    """One cycle. ``happened``: did anybody do anything since the last one?"""

    before: Snapshot
    plan: Plan
    happened: bool

    @property
    def after(self) -> Snapshot:
        """What it leaves."""
        return after(self.before, self.plan)


@st.composite
def scripts(draw: Draw, minutes: int = 20, *, estimates: bool = True) -> Script:
    """Two domains, three owners, up to a dozen runs with and without limits, estimates, groups and gangs."""
    fleet = [doc.node(f"a{n}", 8, domain="A") for n in range(draw(st.integers(1, 3)))]
    fleet += [doc.node(f"b{n}", 4, domain="B") for n in range(draw(st.integers(0, 2)))]
    fleet += [doc.budget(owner, [doc.envelope(draw(st.sampled_from([4, 8, 16, 40])))]) for owner in OWNERS]
    held = draw(st.sampled_from([200, 200, 3]))
    fleet.append(doc.policy(reservations={"patience": "3h", "notice": "5m", "maxHeld": held}))
    runs = []
    for number in range(draw(st.integers(3, 12))):
        minute = draw(st.sampled_from([0, 0, 0, *range(minutes // 2)]))
        made = doc.run(f"r{number:02}", draw(st.sampled_from([1, 2, 4, 8, 8, 12, 16])), draw(st.sampled_from(OWNERS)))
        limits = [{}, {"timeLimit": "7m"}, {"timeLimit": "1h"}, {"timeLimit": "2h"}]
        runtime = draw(st.sampled_from([*limits, {"expected": "9m"}] if estimates else limits))
        fields: dict[str, Any] = {"runtime": runtime, "locality": draw(st.sampled_from([{}, {}, {"groupGPUs": 4}]))}
        if made["spec"]["resources"]["totalGPUs"] % 4:
            fields["locality"] = {}
        identity = {"uid": f"uid-{number:02}", "creationTimestamp": moment(f"+{minute}m")}
        runs.append((minute, doc.merge(made, {"spec": fields, "metadata": identity})))
    ends = draw(
        st.dictionaries(
            st.integers(1, minutes - 1), st.sampled_from([each["metadata"]["name"] for _, each in runs]), max_size=4
        )
    )
    return Script(fleet, runs, ends)


def played(script: Script, minutes: int = 20, effort: Effort = USUAL) -> Iterator[Played]:
    """A cycle a minute."""
    whole = snapshot([*script.fleet, *(run for _, run in script.runs)])
    first = {run["metadata"]["name"]: minute for minute, run in script.runs}
    now = replace(whole, tables={**whole.tables, "runs": _of(whole, first, lambda minute: minute == 0)})
    for minute in range(minutes):
        arrived = _of(whole, first, lambda seen, minute=minute: seen == minute)
        if minute:
            now = _joined(now, arrived)
        happened = bool(len(arrived))
        ending = script.ends.get(minute)
        if ending is not None and first[ending] <= minute:
            now, happened = edited(now, [Cell("runs", ("default", ending), "completed_at", AT + 60 * minute)]), True
        found = plan(now, AT + 60 * minute, effort)
        cycle = Played(now, found, happened)
        yield cycle
        now = cycle.after


def _of(whole: Snapshot, first: dict[str, int], wanted: Any) -> pa.Table:
    table = whole.tables["runs"]
    kept = [place for place, name in enumerate(values.texts(table, "name")) if wanted(first[name])]
    return canonical(table.take(pa.array(kept, pa.int64())), schema.RUNS)


def _joined(now: Snapshot, arrived: pa.Table) -> Snapshot:
    both = pa.concat_tables([now.tables["runs"], arrived]).unify_dictionaries()
    names = values.texts(both, "name")
    order = sorted(range(len(both)), key=names.__getitem__)
    runs = canonical(both.take(pa.array(order, pa.int64())), schema.RUNS)
    return replace(now, tables={**now.tables, "runs": runs})
