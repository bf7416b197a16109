"""`verify` compares every field that a Plan and anybody else state about a draw: each is spoilt in turn."""

import copy
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.lottery.test_verify import Published, drawn
from tests.support import documents
from tests.support.documents import Document
from tests.support.times import rfc3339, unix
from tests.support.worlds import World

__all__ = ["drawn"]

Spoil = tuple[str, Callable[[Published], object]]
"""What is spoilt, and how."""

PLACE: Final = (
    "the draw is of groups: where they lay and who paid is in the lake's plan alone, of the cycle that opened it"
)
LEDGER: Final = {
    "Lease.metadata.creationTimestamp": "the server's clock",
    "Lease.metadata.uid": "the server's",
    "Lease.status.funding.0.class": "the ledger, which no draw asks",
}
"""Fields that may say anything where the lake is there, and why."""
FREE: Final = LEDGER | {
    "Lease.spec.flavor": PLACE,
    "Lease.spec.owner": PLACE,
    "Lease.spec.paidBy.budget": PLACE,
    "Lease.spec.paidBy.envelope": PLACE,
    "Lease.spec.reason": PLACE,
    "Lease.spec.slice.nodeUid": PLACE,
    "Lease.spec.slice.role": PLACE,
}
"""Fields that may say anything where it is not."""
OTHER: Final = {
    "closureReason": "Shrink", "reason": "Grow", "role": "Spare", "class": "shared", "closed": False,
    "flavor": "A100-80GB", "nodes": "a01#9", "position": 7, "group": 7, "draw": 7,
}  # fmt: skip


def leaves(value: Any, path: str = "") -> Iterator[str]:
    """Dotted paths of all that is no mapping or list; of a list of slots, the first."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from leaves(each, f"{path}.{key}")
    elif isinstance(value, list):
        for number, each in enumerate(value[:1] if path.endswith(".nodes") else value):
            yield from leaves(each, f"{path}.{number}")
    else:
        yield path.removeprefix(".")


def spoilt(name: str, value: Any) -> Any:
    """Another value that the field may have."""
    if name in OTHER:
        return OTHER[name]
    if re.fullmatch(r"\d{4}-\d\d-\d\dT.*Z", str(value)):
        return rfc3339(unix(value) + 3600)
    if re.fullmatch(r"[0-9a-f]{64}", str(value)):
        return value[:-1] + ("0" if value[-1] != "0" else "1")
    if "#" in str(value):
        return value.replace("/", "/x")
    return f"{value}x" if isinstance(value, str) else value + 1


def spoil(record: Document, path: str) -> None:
    """Puts another value there."""
    *above, last = (int(key) if key.isdigit() else key for key in path.split("."))
    place: Any = record
    for key in above:
        place = place[key]
    name = next(str(key) for key in (last, *reversed(above)) if isinstance(key, str))
    place[last] = spoilt(name, place[last])


def fields(of: Published) -> Iterator[tuple[str, Document, str]]:
    """(name, record, path in it) of all that says something of the draw."""
    told = {"Plan": of.plan, "Lease": of.lease, "Reservation": of.reservation, "ConfigMap": of.chain}
    parts = {
        "Plan": ("status.lottery",), "Lease": ("metadata.creation", "metadata.uid", "spec", "status"),
        "Reservation": ("metadata.uid", "spec.earliestStart"), "ConfigMap": ("data.anchor", "data.position"),
    }  # fmt: skip
    for kind, record in told.items():
        for path in leaves(record):
            if path.startswith(parts[kind]):
                yield f"{kind}.{path}", record, path


def passed(world: World, spoils: Iterable[Spoil], *options: str | Path) -> list[str]:
    """Those of the spoils that `verify` lets pass, be it asked for the run or for the Plan."""
    through = []
    for name, change in spoils:
        of = Published(copy.deepcopy(world.state().documents))
        asked = of.lease["spec"]["runRef"]["name"], of.plan["metadata"]["name"]
        change(of)
        other = World()
        other.path.write_text(documents.dump(of.documents))
        for each in asked:
            said = other.runs("verify", each, *options, at="+20m")
            assert said.code in {0, 1}, (name, said.err)
            through += [name] if said.code == 0 else []
    return through


def spoils(world: World) -> Iterator[Spoil]:
    """Every field, with another value in it."""
    for number, (name, *_) in enumerate(fields(Published(world.state().documents))):

        def change(of: Published, number: int = number) -> None:
            _, record, path = [*fields(of)][number]
            spoil(record, path)

        yield name, change


@pytest.mark.parametrize("kept", [True, False])
def test_a_field_that_is_spoilt_is_named_or_free_for_a_reason(drawn: World, kept: bool) -> None:
    of_all = [*spoils(drawn)]
    options: list[str | Path] = ["--lake", drawn.lake] if kept else []

    assert {*passed(drawn, of_all, *options)} == (LEDGER if kept else FREE).keys()
    assert len(of_all) > 2 * len(FREE)


@pytest.fixture(scope="module")
def crowd() -> World:
    """Two picks for W among five runs of three owners."""
    world = World().domain("A", nodes=5)
    for owner in ("org:p", "org:q", "org:r", "org:w"):
        world.budget(owner, 96)
    for run, owner in (("p1", "org:p"), ("p2", "org:p"), ("q1", "org:q"), ("q2", "org:q"), ("r", "org:r")):
        world.run(run, 8, owner=owner)
    world.old()
    world.run("w", 16, by=8, owner="org:w").cycle()
    world.cycle("+15m")
    return world


def fewer(world: World) -> Iterator[Spoil]:
    """A token less in a pool, an owner less, a pool less, a draw less."""
    (draw,) = Published(world.state().documents).lottery["draws"]
    for number, pool in enumerate(draw["pools"]):
        for place, owner in enumerate(pool):
            for token in range(len(owner["tokens"])):
                yield f"{number} {owner['owner']} {token}", partial(less, at=(number, place, "tokens", token))
            yield f"{number} {owner['owner']}", partial(less, at=(number, place))
        yield f"{number}", partial(less, at=(number,))
    yield "the draw", lambda of: of.lottery["draws"].clear()


def less(of: Published, at: tuple[int | str, ...]) -> None:
    """Takes one thing out of the pools."""
    *above, last = at
    place: Any = of.lottery["draws"][0]["pools"]
    for key in above:
        place = place[key]
    place.pop(last)


def both(of: Published) -> None:
    """A lease that says in its proof and its cause alike that another Plan took it."""
    for each in ("proof", "cause"):
        of.lease["status"][each]["plan"] = "20260101t000000z"


def elsewhere(of: Published) -> None:
    """A lease that says it lay on the other node."""
    (first, *_), place = of.lease["spec"]["slice"]["nodes"], of.lease["spec"]["slice"]
    node = "a02" if first.startswith("a01") else "a01"
    place["nodes"] = [f"{node}#{number}" for number in range(8)]


def test_whoever_is_missing_in_a_pool_is_found_where_the_lake_is(crowd: World) -> None:
    of_all = [*fewer(crowd), ("another Plan", both), ("another node", elsewhere)]

    assert passed(crowd, of_all, "--lake", crowd.lake) == []
    assert len(of_all) >= 15


def test_a_draw_with_pools_that_the_lake_alone_has_is_verified_from_there(crowd: World) -> None:
    def bare(of: Published) -> None:
        (draw,) = of.lottery["draws"]
        pools = [[{"owner": each["owner"], "tokens": each["tokens"]} for each in pool] for pool in draw.pop("pools")]
        draw["poolsDigest"] = hashlib.sha256(json.dumps(pools, separators=(",", ":")).encode()).hexdigest()

    said = World()
    of = Published(copy.deepcopy(crowd.state().documents))
    bare(of)
    said.path.write_text(documents.dump(of.documents))
    name = of.plan["metadata"]["name"]
    assert "lie in the lake; say --lake DIR" in said.runs("verify", name).refused()
    assert "holds  pick 1 of" in said.runs("verify", name, "--lake", crowd.lake).out
