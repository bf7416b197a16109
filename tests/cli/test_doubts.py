"""What leads nowhere as things stand is accepted by submit, with a warning that says so."""

from typing import Any

import pytest

from tests.support import documents as doc
from tests.support.worlds import World


def warned(*items: dict[str, Any]) -> list[str]:
    """Warnings of submitting these to a fleet of one node, a Budget of org:ai:rai and one of org:b."""
    world = World().domain("A").budget("org:ai:rai", 8).budget("org:b", 8).run("train", 1, owner="org:b")
    said = world.runs("submit", "-f", "-", at="+0s", stdin=doc.dump(items)).ok().err
    return [line.removeprefix("warning: ") for line in said.splitlines() if line.startswith("warning: ")]


def run(owner: str = "org:b", **spec: Any) -> dict[str, Any]:
    return doc.merge(doc.run("r", 4, owner), {"spec": spec})


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (
            run(follow={"after": ["trian"]}),
            ("Run default/r: spec.follow.after names trian, and there is no such run in namespace default: "
            "it waits until there is one; did you mean train?"),
        ),
        (
            run(locality={"selector": {"region": "us-wset"}}),
            "Run default/r: its selector region=us-wset matches no node of flavor H100-80GB",
        ),
        (
            run("org:ai:ria"),
            ("Run default/r: spec.owner org:ai:ria has no Budget: nobody pays for it as things stand; did you mean "
            "org:ai:rai?"),
        ),
        (
            run(parent="trian"),
            ("Run default/r: spec.parent names trian, and there is no such run in namespace default: "
            "no quota counts it until there is one; did you mean train?"),
        ),
        (
            run(funding={"allowBorrow": True, "sponsors": ["org:ai:ria"]}),
            ("Run default/r: spec.funding.sponsors: org:ai:ria has no Budget, and lends nothing as things stand; "
            "did you mean org:ai:rai?"),
        ),
        (
            run(funding={"allowBorrow": True, "sponsors": ["org:ai:rai", *(f"org:x{n:02}" for n in range(12))]}),
            (f"Run default/r: spec.funding.sponsors: {', '.join(f'org:x{n:02}' for n in range(10))}, 2 more have no "
            "Budget, and lend nothing as things stand"),
        ),
        (
            doc.budget("org:c", [doc.envelope(8, end="2025-12-01T00:00:00Z")]),
            "Budget org-c: the window of spec.envelopes[gpus] was over at 2025-12-01T00:00:00Z: it pays for nothing",
        ),
        (
            doc.budget("org:c", [doc.envelope(8, selector={"regoin": "us-west"})]),
            "Budget org-c: spec.envelopes[gpus].selector regoin=us-west matches no node of flavor H100-80GB",
        ),
    ],
)  # fmt: skip
def test_u15_what_leads_nowhere_is_accepted_with_a_warning(item: dict[str, Any], said: str) -> None:
    assert warned(item) == [said]


@pytest.mark.parametrize(
    "items",
    [
        [run(follow={"after": ["train"]})],
        [run("org:b:x")],
        [run(parent="train")],
        [run(parent="tree"), doc.merge(run(), {"metadata": {"name": "tree"}})],
        [run(funding={"allowBorrow": True, "sponsors": ["org:ai:rai"]})],
        [run("org:z", funding={"opportunistic": True})],
        [run("org:c"), doc.budget("org:c", [doc.envelope(8)])],
        [run(locality={"selector": {"region": "us-west"}})],
    ],
)
def test_u15_what_leads_somewhere_is_not_warned_of(items: list[dict[str, Any]]) -> None:
    assert warned(*items) == []
