"""`verify` compares every field that a Plan and anybody else state about a draw: each is spoilt in turn."""

import copy
import re
from collections.abc import Iterator
from typing import Any, Final

from tests.lottery.test_verify import Published, drawn
from tests.support import documents
from tests.support.documents import Document
from tests.support.times import rfc3339, unix
from tests.support.worlds import World

__all__ = ["drawn"]

PLACE: Final = "the draw is of groups; where they lay and who paid is fixed by the API server, and in the lake's plan"
FREE: Final = {
    "Lease.metadata.creationTimestamp": "the server's clock",
    "Lease.metadata.uid": "the server's",
    "Lease.spec.flavor": PLACE,
    "Lease.spec.owner": PLACE,
    "Lease.spec.paidBy.budget": PLACE,
    "Lease.spec.paidBy.envelope": PLACE,
    "Lease.spec.reason": PLACE,
    "Lease.spec.slice.nodeUid": PLACE,
    "Lease.spec.slice.role": PLACE,
    "Lease.status.funding.0.class": "the ledger, which no draw asks",
}
"""Fields that may say anything, and why."""
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


def test_a_field_that_is_spoilt_is_named_or_free_for_a_reason(drawn: World) -> None:
    documents_of = drawn.state().documents
    names = [name for name, *_ in fields(Published(documents_of))]
    passed = []
    for number, name in enumerate(names):
        of = Published(copy.deepcopy(documents_of))
        run = of.lease["spec"]["runRef"]["name"]
        _, record, path = [*fields(of)][number]
        spoil(record, path)
        world = World()
        world.path.write_text(documents.dump(of.documents))
        said = world.runs("verify", run, at="+20m")
        if said.code == 0:
            passed.append(name)
        else:
            assert said.code == 1, (name, said.err)

    assert {*passed} == FREE.keys()
    assert len(names) > 2 * len(FREE)
