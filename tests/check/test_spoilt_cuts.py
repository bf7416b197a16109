"""Cuts (spec §6): one that may not be, and a draw that does not come out so, are caught under their own names."""

from collections.abc import Callable

import msgspec
import pytest

from jobtree.api import OwnerPath
from jobtree.api.kinds.plan import Lottery, PoolOwner
from jobtree.world.plan import Plan
from tests.check.scene import Scene
from tests.check.spoils import Spoil
from tests.support.times import moment


def drawn(change: Callable[[Lottery], Lottery]) -> Callable[[Scene], Scene]:
    """The plan publishes another lottery."""

    def write(plan: Plan) -> Plan:
        assert plan.lottery is not None
        return msgspec.structs.replace(plan, lottery=change(plan.lottery))

    return lambda scene: scene.then(write)


def draws(**changes: object) -> Callable[[Scene], Scene]:
    """Other facts in its one draw."""
    return drawn(lambda it: msgspec.structs.replace(it, draws=(msgspec.structs.replace(it.draws[0], **changes),)))


def closes(**changes: object) -> Callable[[Scene], None]:
    """Other facts in the closure."""

    def change(scene: Scene) -> None:
        scene.closures[0] = msgspec.structs.replace(scene.closures[0], **changes)

    return change


def with_a_mate(scene: Scene) -> Scene:
    """w starts together with a run of v's own owner."""
    gang = {"name": "pair", "size": 2}
    scene.domain("B", 4).edit("Run", "w", {"spec": {"gang": gang}}).run("mate", 4, owner="org:v", gang=gang)
    return scene.starts("mate", "b01#0-3", payer="org-v/gpus")


SPOILS = [
    Spoil(
        "drawn", "another secret", drawn(lambda it: msgspec.structs.replace(it, secret="6f" * 32)), "draws-recompute"
    ),
    Spoil("drawn", "another uid", draws(uid="uid-w-2"), "draws-recompute"),
    Spoil(
        "drawn",
        "a pool with a run that is not there",
        draws(pools=((PoolOwner(owner=OwnerPath("org:v"), tokens=("default/u#0", "default/v#0")),),)),
        "draws-recompute",
    ),
    Spoil("drawn", "a draw that took another", draws(picks=("default/w#0",)), "draws-recompute cut-justified"),
    Spoil("drawn", "the second pick of one", closes(draw=1), "cut-justified"),
    Spoil(
        "drawn",
        "cut for a promise that is not there",
        closes(made_room_for="default/w-2"),
        "cut-justified draws-recompute",
    ),
    Spoil(
        "drawn",
        "a run that is protected",
        lambda s: s.policy(lottery={"term": "48h"}),
        "cut-justified draws-recompute",
    ),
    Spoil("drawn", "a run of the owner of one that starts with it", with_a_mate, "cut-justified draws-recompute"),
    Spoil(
        "drawn", "more GPUs than one cycle may cut", lambda s: s.policy(cuts={"maxGPUsPerCycle": 4}), "cut-justified"
    ),
    Spoil(
        "drawn",
        "a promise that is not due",
        lambda s: s.edit("Reservation", "w-1", {"status": {"earliestStart": moment("+1h")}}),
        "cut-justified",
    ),
]


@pytest.mark.parametrize("spoil", SPOILS, ids=str)
def test_a_spoilt_cut_is_caught_by_its_rule_and_no_other(spoil: Spoil) -> None:
    assert spoil.found() == spoil.wanted
