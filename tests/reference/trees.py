"""Tiny trees of owners whose money was lowered under what runs: what a start recalls lets other claims come back.

A root whose first envelope may bound the subtree, with an aggregate over its two, and owners below, some of them
without a Budget. Claims of an hour ago run on all of it; then caps fall, and nearer relatives ask.
"""

from typing import Any, Final

from hypothesis import strategies as st

from tests.reference.worlds import AT, World
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.drawing import Draw
from tests.support.times import moment

FAR: Final = ("org:a:x", "org:a:x:u", "org:a:y", "org:a:z")
NEAR: Final = ("org:a", "org:a", *FAR, "org:b")
"""Owners of what runs, and of what comes."""


@st.composite
def trees(draw: Draw) -> World:
    """A world with up to seven runs, most of which run."""
    fleet = [doc.node("w0"), doc.node("w1"), doc.merge(doc.node("e0", domain="B"), _labels(region="us-east"))]
    scope = draw(st.sampled_from(["own", "subtree"]))
    places = [draw(st.sampled_from([{"region": "*"}, {"region": "us-west"}])) for _ in range(2)]
    below = [draw(st.integers(1, 2)) for _ in range(2)]

    def budgets(root: list[int]) -> list[Document]:
        first, second = (doc.envelope(root[n], f"e{n}", selector=places[n], **field) for n, field in enumerate(fields))
        both = {"name": "both", "envelopes": ["e0", "e1"], "maxConcurrency": root[2]}
        return [
            doc.budget("org:a", [first, second], aggregateCaps=[both]),
            doc.budget("org:a:x", [doc.envelope(below[0])]),
            doc.budget("org:a:y", [doc.envelope(below[1], lending={"allow": True})]),
        ]

    fields: tuple[dict[str, Any], ...] = ({"scope": scope}, {})
    before = [_run(draw, number, FAR) for number in range(draw(st.integers(2, 4)))]
    after = [_run(draw, 4 + number, NEAR) for number in range(draw(st.integers(1, 3)))]
    since = draw(st.sampled_from([None, None, None, AT - 3600, AT - 3599]))
    then = budgets([draw(st.integers(1, 6)) for _ in range(3)])
    return World(
        [*fleet, *then, *before, *after, doc.policy()], [*fleet, *budgets([24] * 3), *before, doc.policy()], since
    )


def _labels(**labels: str) -> Document:
    return {"metadata": {"labels": labels}}


def _run(draw: Draw, number: int, owners: tuple[str, ...]) -> Document:
    gpus = draw(st.integers(1, 3))
    spec: Document = {"funding": draw(st.sampled_from([{}, {}, {"allowBorrow": True, "sponsors": ["org:a:y"]}]))}
    if draw(st.integers(0, 3)) == 3:
        spec["malleable"] = {"minTotalGPUs": 1, "maxTotalGPUs": gpus, "stepGPUs": 1}
    age = draw(st.sampled_from([0, 40])) * 3600 + 10 - number
    identity = {"metadata": {"uid": f"uid-{number}", "creationTimestamp": moment(f"-{age}s")}, "spec": spec}
    return doc.merge(doc.run(f"r{number}", gpus, draw(st.sampled_from(owners))), identity)
