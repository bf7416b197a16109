"""What runs already, after an edit of what pays for it: one field at a time (spec §3.5, §3.6)."""

from typing import Any

import pytest

from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.times import moment
from tests.support.worlds import World

LENDING = {"allow": True, "to": ["club"]}
FELT: dict[str, Document] = {
    "concurrency": {"concurrency": 3},
    "hours": {"maxGPUHours": 2},
    "credits": {"maxCredits": 4},
    "start": {"start": moment("+9h")},
    "end": {"end": moment("+30m")},
    "the envelope's name": {"name": "others"},
    "flavor": {"flavor": "A100"},
}
PAID_ON: dict[str, Document] = {
    "selector": {"selector": {"region": "elsewhere"}},
    "lending.to": {"lending": {"allow": True, "to": ["nobody"]}},
    "lending.allow": {"lending": {"allow": False}},
    "perRun": {"perRun": {"maxGPUs": 1}},
    "sharing": {"sharing": "none"},
}


def lent(**fields: Any) -> World:
    """lab pays for 4 GPUs of its own and lends as many to club; then its envelope says something else."""
    world = World().node("n").policy(creditRates={doc.FLAVOR: 1, "A100": 3})
    world.budget("lab", envelopes=[doc.envelope(8, lending=LENDING)])
    world.run("own", 4, owner="lab")
    world.run("guest", 4, owner="club", funding={"allowBorrow": True, "sponsors": ["lab"]})
    assert world.cycle().running == ["guest", "own"]
    edited = {**doc.envelope(8, lending=LENDING), **fields}
    return world.edit("Budget", "lab", spec={"envelopes": [edited]})


@pytest.mark.parametrize("fields", FELT.values(), ids=FELT)
def test_what_is_felt_at_once(fields: Document) -> None:
    found = lent(**fields).cycle("+1h")
    assert (found.running, found.funding("own")) == (["guest", "own"], {"unfunded": 4})


@pytest.mark.parametrize("fields", PAID_ON.values(), ids=PAID_ON)
def test_what_is_of_starts_to_come(fields: Document) -> None:
    found = lent(**fields).cycle("+1h")
    assert (found.funding("own"), found.funding("guest")) == ({"owned": 4}, {"borrowed": 4, "lenders": ["lab"]})


def test_an_envelope_for_another_flavor_was_charged_nothing_and_is_rated_anew() -> None:
    world = lent(flavor="A100", maxCredits=1000)
    found = world.node("m", flavor="A100").run("new", 2, owner="lab", resources={"gpuType": "A100"}).cycle("+1h")
    assert (found.funding("own"), found.funding("new")) == ({"unfunded": 4}, {"owned": 2})
    assert world.usage("lab", at="+2h")["creditsConsumed"] == 2 * 3
    back = [doc.envelope(8, lending=LENDING)]
    assert world.edit("Budget", "lab", spec={"envelopes": back}).cycle("+2h").funding("own") == {"owned": 4}
    assert world.usage("lab", at="+2h")["gpuHoursConsumed"] == 8
