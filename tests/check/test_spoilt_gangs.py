"""Groups, pods, spares and widths (spec §2): every way to spoil them is caught under its own name."""

import pytest

from tests.check.spoils import (
    Spoil,
)

SPOILS = [
    Spoil(
        "loan",
        "a running gang that lacks a GPU and is left as it is",
        lambda s: s.edit("Run", "o", {"spec": {"resources": {"totalGPUs": 2}}}),
        "running-has-width",
    ),
    Spoil("gang", "a group that lacks a pod", lambda s: s.move(2, "a02#0-3"), "gang-complete running-has-width"),
    Spoil(
        "gang",
        "a group too many",
        lambda s: s.envelope("org-a", {"concurrency": 30}).starts("r", "b01#0-3", group=2),
        "gang-complete running-has-width spares-complete groups-together",
    ),
    Spoil(
        "gang",
        "a group that is missing",
        lambda s: s.drop(2, 3),
        "running-has-width",
    ),
    Spoil(
        "gang",
        "groups that do not count from 0",
        lambda s: (s.respec(2, group=2), s.respec(3, group=2)),
        "gang-complete",
    ),
    Spoil(
        "gang",
        "a spare in another domain than its group",
        lambda s: s.edit("Run", "r", {"spec": {"locality": {"allowCrossGroupSpread": True}}}).move(1, "b01#0-3"),
        "group-in-domain",
    ),
    Spoil(
        "family",
        "a group in two domains",
        lambda s: s.move(2, "b01#1"),
        "group-in-domain",
    ),
    Spoil(
        "family",
        "a group in two clusters with equal labels",
        lambda s: s.edit("Node", "a02", {"metadata": {"labels": {"cluster": "c2"}}}),
        "group-in-domain",
    ),
    Spoil(
        "family",
        "a group on nodes that are domains of their own",
        lambda s: [s.edit("Node", n, {"metadata": {"labels": {"fabric.domain": None}}}) for n in ("a01", "a02")],
        "group-in-domain",
    ),
    Spoil(
        "gang",
        "groups that must lie together in two domains",
        lambda s: s.move(2, "b01#0-7").move(3, "b02#4-7"),
        "groups-together",
    ),
    Spoil(
        "gang",
        "a pod across two nodes",
        lambda s: (
            s.edit("Run", "r", {"spec": {"spares": 0}}).drop(1, 3).move(0, "a01#0-5").starts("r", "a03#0-1", name="r-9")
        ),
        "pod-on-one-node",
    ),
    Spoil("gang", "a start without a spare", lambda s: s.drop(3), "spares-complete"),
    Spoil("gang", "half a spare", lambda s: s.move(3, "a03#4-5"), "spares-complete pod-on-one-node"),
    Spoil(
        "simple", "a spare that was not asked for", lambda s: s.starts("r", "a02#0", role="Spare"), "spares-complete"
    ),
    Spoil("simple", "less than it asked for", lambda s: s.move(0, "a01#0-2"), "running-has-width gang-complete"),
    Spoil("simple", "more than it asked for", lambda s: s.move(0, "a01#0-4"), "running-has-width gang-complete"),
    Spoil("malleable", "less than the least width", lambda s: s.drop(1, 2), "running-has-width"),
    Spoil("malleable", "a width between steps", lambda s: s.move(2, "a03#0-3"), "width-on-step gang-complete"),
    Spoil(
        "malleable",
        "a start beyond totalGPUs",
        lambda s: s.edit("Run", "m", {"spec": {"resources": {"totalGPUs": 16}}}),
        "width-on-step",
    ),
    Spoil(
        "malleable",
        "growth beyond what is wanted",
        lambda s: s.edit("Run", "g", {"spec": {"malleable": {"desiredTotalGPUs": 8}}}),
        "width-on-step",
    ),
    Spoil(
        "malleable",
        "growth by two steps in a cycle",
        lambda s: s.domain("C", 8).starts("g", "c01#0-7", group=2, reason="Grow"),
        "width-on-step no-overdraft-envelope classes-partition-width",
    ),
    Spoil(
        "malleable",
        "growth of a fixed run",
        lambda s: s.edit("Run", "g", {"spec": {"malleable": None}}),
        "lease-truthful running-has-width gang-complete",
    ),
]


@pytest.mark.parametrize("spoil", SPOILS, ids=str)
def test_it_is_caught_under_its_own_name(spoil: Spoil) -> None:
    assert spoil.found() == spoil.wanted
