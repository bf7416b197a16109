"""A live world at rest: its cycles leave their record in the lake and no Plan of their own (spec §4, §8).

The last Plan says all that another one would, so it only says when it was last found to hold, every ten minutes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from exporters.plans import plain
from jobtree.api import Plan, Time
from jobtree.cluster.protocol import Ref, Write
from jobtree.world.memory import seen
from jobtree.world.reading.intake import Intake

PERIOD: Final = 600
"""Seconds between two marks on the last Plan."""
_OWN: Final = {"spec": {"at", "snapshot", "details"}, "status": {"phase", "stages", "prices", "observed"}}
"""What of a Plan is each cycle's own, be the world the same."""


def resting(intake: Intake, writes: Sequence[Write]) -> Plan | None:
    """The last Plan, where a cycle's ``writes`` are but another one that says the same; None where they are more."""
    last = seen.newest(intake.plans)
    if last is None or last.status.phase != "Applied" or any(each.ref.kind != "Plan" for each in writes):
        return None
    made = next((each.body for each in writes if each.verb == "create"), None)
    return last if made is not None and _said(made) == _said(plain.document(last)) else None


def marked(last: Plan, at: int) -> Iterator[Write]:
    """The mark that the last Plan holds at Unix second ``at``, where it is due."""
    if at - (last.status.observed or last.spec.at) >= PERIOD:
        yield Write("patch", Ref("Plan", "", last.name), {"status": {"observed": str(Time(at))}}, "status")


def _said(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{key: value for key, value in plan[part].items() if key not in own} for part, own in _OWN.items()]
