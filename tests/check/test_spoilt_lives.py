"""Swaps, growth and what gives way (spec §6, §7): a plan spoilt in each way that their rules forbid is refused."""

from typing import Any

import pytest

from tests.check.scene import Scene
from tests.check.spoils import Spoil, own_pod, reclosed, reopened

FREE: dict[str, Any] = {"funding": {"opportunistic": True}}
ELASTIC: dict[str, Any] = {"minTotalGPUs": 4, "maxTotalGPUs": 12, "stepGPUs": 4}


def unswapped(scene: Scene, reason: str) -> Scene:
    """s ends instead of being swapped, its standby for this reason, and the tenant stays."""
    return reopened(reclosed(scene.drop(), "s-1", reason), "o-0")


def with_standby_of_8(scene: Scene) -> Scene:
    """The standby's lease of s is of two pods' slots, of which the swap needs one; there is no tenant."""
    reopened(scene.edit("Run", "s", {"spec": {"spares": 2}}).unheld("s-1").unheld("o-0"), "o-0")
    return scene.holds("s", "a02#0-7", role="Spare", name="s-1")


def wide(scene: Scene, *groups: int, on: str = "a03") -> Scene:
    """A malleable run m of 4 GPUs a group, by 4: these groups on one node, group 1 on a01, which is lost."""
    scene.run("m", 12, malleable=ELASTIC, created="-3h", locality={"groupGPUs": 4})
    scene.holds("m", "b01#0-3", name="m-1", group=1).domain("B", 8).remove("Node", "b01")
    for place, group in enumerate(groups):
        scene.holds("m", f"{on}#{4 * place}-{4 * place + 3}", name=f"m-{group}", group=group)
    return scene.closes("m-1", "NodeFailure").envelope("org-a", {"concurrency": 32})


def wide_tenant(scene: Scene) -> Scene:
    """The tenant o is malleable, and has a group on the standby's slots and two elsewhere."""
    scene.edit("Run", "o", {"spec": {"malleable": ELASTIC, "locality": {"groupGPUs": 4}}})
    scene.edit("Run", "o", {"spec": {"resources": {"totalGPUs": 12}}})
    scene.holds("o", "a03#0-3", payer=None, name="o-1", group=1)
    return scene.holds("o", "a03#4-7", payer=None, name="o-2", group=2)


def in_the_way(scene: Scene, **fields: Any) -> Scene:
    """r waits for o's pods, which are still there; ``fields`` of r's spec."""
    scene.drop(0).add(own_pod("o", "a01", 4)).edit("Run", "r", {"spec": fields})
    return scene


def growing_over(scene: Scene) -> Scene:
    """The room that g grows into is that of opportunistic work."""
    scene.run("o", 8, owner="nobody", created="-3h", **FREE).holds("o", "b02#0-7", payer=None, name="o-0")
    return scene.closes("o-0", "ReclaimUnfunded")


SPOILS = [
    Spoil("failure", "a run that ends beside its standby", lambda s: unswapped(s, "NodeFailure"), "closure-justified"),
    Spoil(
        "failure",
        "a swap that is declined for unfunded work",
        lambda s: unswapped(s, "SwapDeclined"),
        "closure-justified",
    ),
    Spoil(
        "failure",
        "a swap that is declined and made",
        lambda s: reclosed(s, "s-1", "SwapDeclined"),
        "closure-justified lease-truthful spares-complete stage-value",
    ),
    Spoil(
        "failure",
        "a standby that goes for a swap on the slots of another",
        lambda s: (
            s.edit("Run", "s", {"spec": {"spares": 2}})
            .holds("s", "a02#4-7", role="Spare", name="s-3")
            .closes("s-3", "Swap")
        ),
        "closure-justified",
    ),
    Spoil("failure", "a swap that drops what is left of a standby", with_standby_of_8, "closure-justified"),
    Spoil(
        "failure",
        "a swap that takes a tenant's slots beside free ones",
        lambda s: s.edit("Run", "s", {"spec": {"spares": 2}}).holds("s", "a03#0-3", role="Spare", name="s-3"),
        "closure-justified",
    ),
    Spoil(
        "failure",
        "a tenant that loses groups that no swap needs",
        lambda s: wide_tenant(s).closes("o-2", "ReclaimedBySpare"),
        "closure-justified",
    ),
    Spoil(
        "failure",
        "a malleable run that loses a group that runs on",
        lambda s: wide(s, 0, 2).closes("m-2", "NodeFailure"),
        "closure-justified",
    ),
    Spoil(
        "failure",
        "a malleable run that ends beside its least width",
        lambda s: wide(s, 0).closes("m-0", "NodeFailure"),
        "closure-justified",
    ),
    Spoil("malleable", "growth that takes the room of others", growing_over, "closure-justified"),
    Spoil(
        "malleable",
        "growth that the Policy leaves out",
        lambda s: s.policy(stages=["starts", "opportunistic"]),
        "width-on-step",
    ),
    Spoil(
        "malleable",
        "growth of a run that is not paid for",
        lambda s: s.unheld("g-0").holds("g", "b01#0-7", payer=None, name="g-0"),
        "width-on-step",
    ),
    Spoil(
        "malleable",
        "growth beside an end",
        lambda s: (
            s.domain("C", 8)
            .holds("g", "c01#0-7", name="g-2", group=2)
            .edit("Run", "g", {"spec": {"malleable": {"desiredTotalGPUs": 16, "maxTotalGPUs": 32}}})
            .closes("g-2", "NodeFailure")
            .remove("Node", "c01")
            .envelope("org-a", {"concurrency": 64})
        ),
        "width-on-step",
    ),
    Spoil("malleable", "growth onto a standby", lambda s: s.respec(3, group=0), "gang-complete"),
    Spoil(
        "opportunistic",
        "a reclaim for a run that may not lie there",
        lambda s: in_the_way(s, locality={"selector": {"region": "elsewhere"}}),
        "closure-justified",
    ),
    Spoil(
        "opportunistic",
        "a reclaim for a run that nobody would pay for",
        lambda s: in_the_way(s, owner="nobody:else"),
        "closure-justified",
    ),
    Spoil(
        "opportunistic",
        "a reclaim for a run that waits for another",
        lambda s: in_the_way(s, follow={"after": ["p"]}),
        "closure-justified",
    ),
]


@pytest.mark.parametrize("spoil", SPOILS, ids=str)
def test_it_is_caught_under_its_own_name(spoil: Spoil) -> None:
    assert spoil.found() == spoil.wanted


TWISTS = [
    Spoil(
        "failure",
        "a swap that is declined for funded work",
        lambda s: unswapped(s, "SwapDeclined").unheld("o-0").holds("o", "a02#0-3", name="o-0"),
        "",
    ),
    Spoil(
        "failure",
        "a swap that leaves a standby",
        lambda s: with_standby_of_8(s).starts("s", "a02#4-7", role="Spare", reason="Swap", name="s-3"),
        "",
    ),
    Spoil("failure", "a tenant that loses a group", wide_tenant, ""),
    Spoil("failure", "a malleable run without a lost group", lambda s: wide(s, 0, 2), ""),
    Spoil(
        "failure",
        "a lost node under a run that cannot be read",
        lambda s: reopened(s.quarantine("Run", "q"), "q-0"),
        "",
    ),
    Spoil("opportunistic", "a reclaim whose pods stay", in_the_way, ""),
    Spoil("opportunistic", "a reclaim for one that may be unfunded", lambda s: in_the_way(s, **FREE), ""),
]


@pytest.mark.parametrize("twist", TWISTS, ids=str)
def test_it_is_no_breach(twist: Spoil) -> None:
    assert twist.found() == set()
