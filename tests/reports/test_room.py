"""What became of every GPU of a fleet over time: the view `room` against a count slot by slot, second by second."""

from collections import defaultdict
from itertools import pairwise, product
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from exporters.lake.foldtables import FOLDS
from reports.read.database import last_forms, open_database, terms_for
from reports.read.source import Source
from tests.support.effort import examples

SPAN, STEP = 600, 60  # seconds of the period, and of the steps that a chart of it has
AMOUNTS = ("active", "standby", "foreign", "stopped", "free", "broken")
LEASE = {
    "namespace": "n", "run": "r", "run_uid": "r", "owner": "o", "run_owner": "o", "flavor": "f", "group": 0,
    "node": "n1", "start": 0, "reason": "Start", "closed": True, "ended": SPAN, "seen": SPAN,
}  # fmt: skip

Slots = dict[tuple[int, int], set[str]]
"""Who is on a slot of n1 in a second: roles."""

HELD = st.lists(
    st.tuples(
        st.sampled_from(["Active", "Spare"]), st.integers(0, 3), st.integers(1, 2), st.integers(0, 500),
        st.integers(1, 400),
    ),
    max_size=8,
)  # fmt: skip


@examples(25)
@given(held=HELD, stopped=st.integers(0, SPAN), foreign=st.integers(0, 2))
def test_room_is_that_of_a_count(held: list[tuple[str, int, int, int, int]], stopped: int, foreign: int) -> None:
    slots: Slots = defaultdict(set)
    leases = []
    for number, (role, first, count, begin, length) in enumerate(held):
        ordinals = list(range(first, min(4, first + count)))
        cells = list(product(ordinals, range(begin, min(SPAN, begin + length))))
        if any(role in slots[cell] for cell in cells):
            continue  # a slot holds at most one lease of a role
        for cell in cells:
            slots[cell].add(role)
        ledger = segments(begin, begin + length)
        leases.append({**LEASE, "name": f"l{number}", "role": role, "ordinals": ordinals, "funding": ledger})

    assert room(source_of(leases, stopped, foreign)) == counted(slots, stopped, foreign)


def room(source: Source) -> dict[int, dict[str, int]]:
    """GPU-seconds by step, as the view has them."""
    found: dict[int, dict[str, int]] = defaultdict(lambda: dict.fromkeys(AMOUNTS, 0))
    leases, terms = last_forms(source.tables["leases"]), terms_for(source, 0, SPAN)
    view = "SELECT step, seconds, active, standby, foreign_pods, stopped, free, broken FROM room"
    with open_database(source, leases, terms, {}, queries=view) as database:
        for step, seconds, *amounts in database.sql(view).fetchall():
            for name, amount in zip(AMOUNTS, amounts, strict=True):
                found[step][name] += amount * seconds
    return found


def test_a_database_has_the_views_that_its_queries_mean_and_what_they_stand_on() -> None:
    source = source_of([], 0, 0)
    leases, terms = last_forms(source.tables["leases"]), terms_for(source, 0, SPAN)
    views = "SELECT view_name FROM duckdb_views() WHERE NOT internal AND NOT temporary ORDER BY ALL"

    with open_database(source, leases, terms, {}, queries="SELECT '--', * FROM Charges -- no room") as database:
        few = [name for (name,) in database.sql(views).fetchall()]
        assert database.sql("FROM Charges").fetchall() == []
    with open_database(source, leases, terms, {}) as database:
        whole = [name for (name,) in database.sql(views).fetchall()]

    assert few == ["charges", "ledger", "paid", "weights"]
    assert whole == [
        "aggregates", "budgets", "charges", "domains", "envelopes", "foreign_gpus", "ledger", "monthly", "nodes",
        "paid", "payers", "prices", "quarantine", "room", "segments", "use_caps", "waits", "weights",
    ]  # fmt: skip


def counted(slots: Slots, stopped: int, foreign: int) -> dict[int, dict[str, int]]:
    """The same, counted. n1 has 4 GPUs, n2 2, of which pods hold some; n2 takes nothing new from ``stopped`` on."""
    found: dict[int, dict[str, int]] = {}
    for second in range(SPAN):
        total = found.setdefault(second // STEP * STEP, dict.fromkeys(AMOUNTS, 0))
        roles = [slots[place, second] for place in range(4)]
        free, idle = sum(not role for role in roles), 2 - foreign
        total["active"] += sum("Active" in role for role in roles)
        total["standby"] += sum(role == {"Spare"} for role in roles)
        total["foreign"] += foreign
        total["stopped"] += idle if second >= stopped else 0
        total["free"] += free + (0 if second >= stopped else idle)
        total["broken"] += (free if free < 4 else 0) + (idle if foreign and second < stopped else 0)
    return found


def segments(begin: int, end: int) -> list[dict[str, Any]]:
    """A ledger of one stretch, or of two where it is long enough."""
    cuts = [begin, (begin + end) // 2, end] if end - begin > 1 else [begin, end]
    return [{"class": "unfunded", "from": one, "to": other, "rate_milli": None} for one, other in pairwise(cuts)]


def source_of(leases: list[dict[str, Any]], stopped: int, foreign: int) -> Source:
    """What a lake would say of two nodes and these leases."""
    node = {"region": "r", "cluster": "c", "domain": "d", "flavor": "f", "ready": True, "out_of_service": False}
    rows: dict[str, list[dict[str, Any]]] = {
        "leases": leases,
        "cycles": [{"time": time, "cycle": str(time)} for time in (0, SPAN)],
        "discounts": [{"since": None, "milli": 500, "time": SPAN}],
        "foreign": [{"node": "n2", "gpus": foreign, "since": 0, "until": None}] if foreign else [],
        "nodes": [
            {**node, "name": "n1", "gpus": 4, "unschedulable": False, "since": 0, "until": None},
            {**node, "name": "n2", "gpus": 2, "unschedulable": False, "since": 0, "until": stopped},
            {**node, "name": "n2", "gpus": 2, "unschedulable": True, "since": stopped, "until": None},
        ],
    }
    return Source({name: pa.Table.from_pylist(rows.get(name, []), schema) for name, schema in FOLDS.items()}, [])
