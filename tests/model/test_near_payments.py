"""What large models take for a near payment: neither what an envelope lends, nor what a sponsor pays (spec §3.8)."""

from typing import Final

import pytest

import planner
from planner.solver.highs import options, solve
from policies.model import demand
from tests.reference.facts import read
from tests.reference.large import AS_LARGE, hold_between
from tests.reference.model import Reference
from tests.reference.worlds import AT, World
from tests.support import documents as doc

SETTINGS: Final = options(0, 0.0, 2_000)
LENDING: Final = {"allow": True}


def _run(name: str, gpus: int, owner: str, hours: int, **funding: object) -> doc.Document:
    return doc.aged(doc.merge(doc.run(name, gpus, owner), {"spec": {"funding": funding}}), hours)


def _family(*envelopes: doc.Document) -> list[doc.Document]:
    """Nodes, budgets of ``x``, of its kin ``y`` and of a stranger, and a claim of ``y`` on 2 GPUs of ``x``."""
    return [
        doc.node("w0"),
        doc.node("w1"),
        doc.budget("org:a:x", [*envelopes], parents=["org:a"]),
        doc.budget("org:a:y", [doc.envelope(2, selector={"region": "us-east"})], parents=["org:a"]),
        doc.budget("org:b", [doc.envelope(2, lending=LENDING)]),
        _run("claim", 2, "org:a:y", 9),
    ]


LENDS: Final = _family(doc.envelope(4, lending=LENDING | {"maxConcurrency": 4}), doc.envelope(4, "more"))
GUEST: Final = _run("guest", 6, "org:b", 2, allowBorrow=True, sponsors=["org:a:x"])
LENT: Final = World([*LENDS, _run("own", 4, "org:a:x", 1), GUEST], LENDS)
"""Were all that ``x`` pays near, the loan to ``guest`` would count as what ``own`` takes back, which ``more`` pays."""

BORROWS: Final = _family(doc.envelope(4))
OWN: Final = _run("own", 4, "org:a:x", 1, allowBorrow=True, maxBorrowGPUs=2, sponsors=["org:b"])
BORROWED: Final = World([*BORROWS, OWN, _run("kin", 2, "org:a:y", 2)], BORROWS)
"""Were all of ``own`` paid by ``x``, it would have all back; but then nothing is left to ``kin``."""


@pytest.mark.parametrize("world", [LENT, BORROWED], ids=["lent", "borrowed"])
def test_a_loan_has_nothing_back(world: World) -> None:
    snapshot = world.snapshot()
    master = planner.master_of(snapshot, AT, AS_LARGE, last=False)
    master.model.maximise(demand.objective(master.problem, master.starts, unfunded=False))

    found = solve(master.model, SETTINGS)

    assert round(found.objective * 86_400) == Reference(read(snapshot, AT)).optimum()["starts"]
    hold_between(world)
