"""The planner's plans pass the checker, cycle after cycle, on whole kinds of worlds."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from jobtree.api import enc_hook
from jobtree.check import check
from jobtree.world.plan import Plan
from planner import plan as make
from tests.check.scene import Scene
from tests.support.documents import Document, envelope, merge
from tests.support.effort import examples
from tests.support.times import moment

HOUR = 3600
WIDEST = 3
"""Steps from no GPU to the widest that a run may want."""
OWNERS = ("org", "org:a", "org:a:x", "org:b", "corp")


@st.composite
def envelopes(draw: st.DrawFn, name: str) -> Document:
    """An envelope with any of what bounds it."""
    said: dict[str, Any] = {
        "selector": draw(st.sampled_from([{"region": "*"}, {"fabric.domain": "A"}, {"cluster": "c1"}])),
        "scope": draw(st.sampled_from(["own", "own", "subtree"])),
        "sharing": draw(st.sampled_from([None, None, "none", "family"])),
        "maxGPUHours": draw(st.sampled_from([None, None, 0, 30, 100, 400])),
        "start": draw(st.sampled_from([None, None, moment("-2h"), moment("+90m")])),
        "end": draw(st.sampled_from([None, None, moment("+30m"), moment("+10h")])),
        "perRun": draw(st.sampled_from([None, None, {"maxGPUs": 4}, {"maxTime": "6h", "defaultTime": "5h"}])),
        "lending": draw(
            st.sampled_from([None, {"allow": True, "maxConcurrency": 3}, {"allow": True, "to": ["org:a*"]}])
        ),
    }
    return envelope(draw(st.integers(1, 12)), name, **{key: value for key, value in said.items() if value is not None})


@st.composite
def shapes(draw: st.DrawFn) -> Document:
    """The spec of a run, as a patch, with its GPUs under ``gpus``."""
    pod = draw(st.sampled_from([None, 1, 2, 4]))
    group = draw(st.sampled_from([None, 4, 8]))
    steps = draw(st.integers(1, 3))
    unit = group or 4
    spec: dict[str, Any] = {"gpus": unit * steps if pod or group else draw(st.integers(1, 9))}
    if draw(st.booleans()) and (pod or group):
        widths = {"minTotalGPUs": unit, "maxTotalGPUs": unit * WIDEST, "stepGPUs": unit}
        spec["malleable"] = widths
    return merge(
        spec,
        {
            "resources": {"gpusPerPod": pod},
            "locality": {"groupGPUs": group, "allowCrossGroupSpread": draw(st.booleans())},
            "spares": draw(st.sampled_from([0, 0, 1])),
            "runtime": {"timeLimit": draw(st.sampled_from([None, "1h", "4h", "20h"]))},
            "funding": {
                "opportunistic": draw(st.sampled_from([False, False, True])),
                "allowBorrow": draw(st.booleans()),
                "maxBorrowGPUs": draw(st.sampled_from([None, 2])),
                "sponsors": draw(st.sampled_from([[], ["corp"], ["org:b", "corp"]])),
            },
        },
    )


@st.composite
def worlds(draw: st.DrawFn) -> Scene:
    """Up to three domains, budgets of some owners, and up to eight runs."""
    scene = Scene()
    for name in draw(st.sampled_from(["A", "AB", "ABC"])):
        scene.domain(name, *draw(st.lists(st.sampled_from([2, 3, 8]), min_size=1, max_size=3)))
    for owner in draw(st.sets(st.sampled_from(OWNERS), min_size=1)):
        caps: list[Any] = [{"name": "both", "envelopes": ["one", "two"], "maxConcurrency": draw(st.integers(1, 12))}]
        bounds: dict[str, Any] = draw(st.sampled_from([{}, {"aggregateCaps": caps}]))
        scene.budget(
            owner,
            draw(envelopes("one")),
            draw(envelopes("two")),
            **bounds,
        )
    for number in range(draw(st.integers(1, 8))):
        spec = draw(shapes())
        gpus = spec.pop("gpus")
        tree = {"parent": "r0"} if number and draw(st.booleans()) else {}
        quota = {"quota": {"maxGPUs": draw(st.integers(4, 16))}} if not number and draw(st.booleans()) else {}
        created = f"-{draw(st.integers(1, 90))}h"
        scene.run(f"r{number}", gpus, draw(st.sampled_from([*OWNERS, "org:a:y"])), created, **spec, **tree, **quota)
    return scene


def carry_out(scene: Scene, plan: Plan) -> Scene:
    """The world once a plan is carried out, by plain documents."""
    closing = {each.name: each for each in plan.closures}
    leases = []
    for lease in (*scene.old, *plan.leases):
        entries = list(lease.status.funding)
        for segment in (each for each in plan.segments if each.name == lease.name):
            if entries:
                entries[-1] = msgspec.structs.replace(entries[-1], to=segment.since)
            entries.append(Scene.entry(segment.funding_class, segment.since))
        status = msgspec.structs.replace(lease.status, funding=tuple(entries))
        if lease.name in closing:
            ended = closing[lease.name].ended
            entries[-1] = msgspec.structs.replace(entries[-1], to=ended)
            status = msgspec.structs.replace(
                status, funding=tuple(entries), closed=True, ended=ended, closure_reason=closing[lease.name].reason
            )
        leases.append(msgspec.structs.replace(lease, status=status))
    scene.old = leases
    for update in plan.runs:
        told = msgspec.json.decode(msgspec.json.encode(update.status, enc_hook=enc_hook))
        scene.edit("Run", update.name, {"status": None}).edit("Run", update.name, {"status": told})
    return scene


@examples(12)  # a world takes the solver half a dozen times
@given(worlds())
def test_every_plan_of_a_row_of_cycles_passes(scene: Scene) -> None:
    for hours in (0, 1, 5):
        scene.at += hours * HOUR
        snapshot = scene.snapshot()
        plan = make(snapshot, scene.at)
        assert check(snapshot, plan) == []
        scene = carry_out(scene, plan)
    quiet = settled(scene)
    assert (quiet.leases, quiet.closures, quiet.segments) == ([], [], [])


def settled(scene: Scene) -> Plan:
    """The first plan of the same second that grows nothing: runs that started get wider step by step (spec §7)."""
    for _ in range(WIDEST):
        snapshot = scene.snapshot()
        plan = make(snapshot, scene.at)
        assert check(snapshot, plan) == []
        if {lease.spec.reason for lease in plan.leases} != {"Grow"}:
            return plan
        scene = carry_out(scene, plan)
    return make(scene.snapshot(), scene.at)
