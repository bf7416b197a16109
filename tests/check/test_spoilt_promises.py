"""Promises (spec §5): one that is not so, is not kept, or loses its room is caught under its own name."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from jobtree.api import Time
from jobtree.api.kinds.meta import ObjectMeta, RunRef
from jobtree.api.kinds.reservation import (
    Conflict,
    Forecast,
    IntendedSlice,
    Move,
    Reservation,
    ReservationSpec,
    ReservationStatus,
)
from jobtree.world.memory.cycles import Moment
from jobtree.world.plan import Plan, PromiseUpdate, Pruned
from tests.check.scene import T0, Scene
from tests.check.spoils import Spoil
from tests.support.documents import envelope
from tests.support.times import moment, unix

NODES = IntendedSlice(nodes=("a01", "a02"))
STANDS = ReservationStatus(state="Pending", reason="Waiting", earliest_start=Time(unix("+1h")), intended_slice=NODES)


def says(name: str = "w-1", **changes: Any) -> Callable[[Scene], Scene]:
    """The plan writes another status of the promise."""
    status = msgspec.structs.replace(STANDS, **changes)

    def write(plan: Plan) -> Plan:
        return msgspec.structs.replace(plan, promises=[PromiseUpdate(namespace="default", name=name, status=status)])

    return lambda scene: scene.then(write)


def promises(
    run: str, name: str | None = None, start: str = "+2h", nodes: IntendedSlice = NODES, reason: str = ""
) -> Any:
    """The plan makes a promise to a run."""
    made = Reservation(
        metadata=ObjectMeta(name=name or f"{run}-{Moment(T0).name.lower()}", namespace="default"),
        spec=ReservationSpec(
            run_ref=RunRef(name=run, namespace="default"), intended_slice=nodes, earliest_start=Time(unix(start))
        ),
        status=ReservationStatus(
            state="Pending", reason=reason, earliest_start=Time(unix(start)), intended_slice=nodes
        ),
    )
    return lambda scene: scene.then(lambda plan: msgspec.structs.replace(plan, reservations=[made]))


def fresh(scene: Scene) -> Scene:
    """Another run that waits."""
    return scene.run("x", 4)


LATER: dict[str, Any] = {"earliest_start": Time(unix("+2h"))}
MOVE = Move(at=Time(T0), earliest_start=Time(unix("+2h")), cause="A node was lost.")
CLOSED = [
    envelope(16, end=moment("+2h")),
    envelope(16, "next", start=moment("+2h"), preActivation={"allowReservations": False}),
]

SPOILS = [
    Spoil(
        "promised",
        "a promise to a run that runs",
        promises("r", start="+4h"),
        "promise-truthful promise-state promise-held",
    ),
    Spoil(
        "promised",
        "a promise of another name",
        lambda s: promises("x", "mine")(fresh(s)),
        "promise-truthful promise-held",
    ),
    Spoil(
        "promised",
        "a name that is there",
        lambda s: promises("x", "w-1")(fresh(s)),
        "promise-truthful unique-names promise-held promise-kept",
    ),
    Spoil("promised", "a start that is past", lambda s: promises("x", start="-1h")(fresh(s)), "promise-truthful"),
    Spoil(
        "promised",
        "slots held for what nothing gave way to",
        lambda s: promises("x", start="+0s", reason="WaitingForVictims")(fresh(s)),
        "promise-truthful",
    ),
    Spoil(
        "promised",
        "nodes that are not there",
        lambda s: promises("x", nodes=IntendedSlice(nodes=("z",)))(fresh(s)),
        "promise-truthful promise-held",
    ),
    Spoil("promised", "a second promise to one run", promises("w"), "promise-state promise-held"),
    Spoil(
        "promised",
        "more than may be held",
        lambda s: promises("x", start="+20d")(fresh(s.policy(reservations={"maxHeld": 1}))),
        "promise-state promise-held",
    ),
    Spoil("promised", "a later start for no cause", says(**LATER), "promise-kept"),
    Spoil(
        "promised",
        "a cause for another time",
        says(**LATER, history=(msgspec.structs.replace(MOVE, earliest_start=Time(unix("+3h"))),)),
        "promise-kept",
    ),
    Spoil(
        "promised",
        "a start at which nobody pays",
        lambda s: says(**LATER, history=(MOVE,))(
            s.edit("Budget", "org-a", {"spec": {"envelopes": [envelope(16, end=moment("+2h"))]}})
        ),
        "promise-payable",
    ),
    Spoil(
        "promised",
        "a start at which only money pays that no promise may count on",
        lambda s: says(**LATER, history=(MOVE,))(s.edit("Budget", "org-a", {"spec": {"envelopes": CLOSED}})),
        "promise-payable",
    ),
    Spoil(
        "promised",
        "a victim that ends before",
        says(forecast=Forecast(conflict_set=(Conflict(run="default/r", kill_probability=1.0),))),
        "promise-truthful",
    ),
    Spoil("promised", "a promise that is not there", says("w-2"), "promise-state"),
    Spoil("promised", "kept for a run that waits", says(state="Activated"), "promise-state"),
    Spoil("promised", "released for a run that waits", says(state="Released"), "promise-state"),
    Spoil("promised", "its run is gone", lambda s: s.remove("Run", "w"), "promise-state"),
    Spoil(
        "promised",
        "what stands goes",
        lambda s: s.then(lambda plan: msgspec.structs.replace(plan, lapsed=[Pruned(namespace="default", name="w-1")])),
        "promise-state",
    ),
    Spoil(
        "promised",
        "what is in the way lasts longer",
        lambda s: s.edit("Run", "r", {"spec": {"runtime": {"timeLimit": "3h"}}}),
        "promise-held",
    ),
    Spoil(
        "promised",
        "what starts lasts too long",
        lambda s: s.run("x", 8, owner="org:a").starts("x", "a02#0-7"),
        "promise-held",
    ),
]


@pytest.mark.parametrize("spoil", SPOILS, ids=str)
def test_it_is_caught_under_its_own_name(spoil: Spoil) -> None:
    assert spoil.found() == spoil.wanted


def test_a_later_start_with_its_cause_is_kept() -> None:
    spoil = Spoil("promised", "a cause", says(**LATER, history=(MOVE,)), "")
    assert spoil.found() == set()
