"""Who pays for starts that lie on nodes: as many of them as can be paid for, whatever the master thought."""

from typing import Final

from planner import Planning
from planner.pay import pay
from tests.reference.worlds import AT, World
from tests.support import documents as doc

BEFORE: Final = [doc.node("n0"), doc.budget("org:a", [doc.envelope(8)]), doc.run("child", 8, "org:a:x")]
RECALLING: Final = World([*BEFORE, doc.node("n1"), doc.run("own", 4, "org:a")], BEFORE)


def test_where_those_that_may_give_way_are_too_few_all_may() -> None:
    planning = Planning(RECALLING.snapshot(), AT)
    *_, outcome = planning.outcomes()
    draft = outcome.draft
    before = dict(draft.paid)

    lost, _ = pay(planning.problem, outcome.room, draft, outcome.settings, frozenset())

    assert list(before) != []
    assert (lost, draft.paid) == ([], before)
