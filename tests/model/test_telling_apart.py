"""Near payments of large models told apart by type as needed, held against models that tell all types apart."""

from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import planner
from planner import bands
from planner.relaxed import Relaxed
from planner.solver import options
from policies import recall_flows
from policies.recall_types import Parts
from tests.reference import worlds
from tests.reference.facts import read
from tests.reference.large import plan_as_large
from tests.reference.model import Reference
from tests.reference.worlds import AT, World
from tests.support import documents as doc
from tests.support.effort import examples
from tests.support.times import moment

WORLDS: Final = 20
SETTINGS: Final = options(0, 0.0, 2_000)
WEST: Final = {"spec": {"locality": {"selector": {"region": "us-west"}}}}


def _run(name: str, gpus: int, owner: str, hours: int) -> doc.Document:
    patch = {"metadata": {"creationTimestamp": moment(f"-{hours}h")}, "spec": {"resources": {"gpusPerPod": gpus}}}
    return doc.merge(doc.run(name, gpus, owner), patch)


BEFORE: Final = [
    doc.node("w0"),
    doc.merge(doc.node("e0", domain="d2"), {"metadata": {"labels": {"region": "us-east"}}}),
    doc.budget("org:a:x", [doc.envelope(4, selector={"region": "us-west"})], parents=["org:a"]),
    doc.budget("org:a:y", [doc.envelope(8, selector={"region": "us-east"})], parents=["org:a"]),
    doc.merge(_run("claim", 4, "org:a:y", 9), WEST),
]
WAITING: Final = [
    _run("wide", 8, "org:a:x", 1),
    doc.merge(_run("own", 4, "org:a:x", 0), WEST),
    doc.merge(_run("kin", 4, "org:a:y", 5), WEST),
]
APART: Final = World([*BEFORE, *WAITING], BEFORE)
"""A claim of ``y`` has all that ``x`` can pay in the west. Only ``own`` can have it back: ``wide`` fits in the east.

To a model that does not tell them apart ``wide`` has it back, since ``kin`` lies in the west and looks like ``own``.
"""


def _worth(value: float) -> int:
    """In GPU-seconds of weight."""
    return round(value * 86_400)


def test_what_lies_elsewhere_has_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    plan_as_large(monkeypatch, fine=False)
    snapshot = APART.snapshot()
    master = planner.master_of(snapshot, AT, last=False)
    optimum = Reference(read(snapshot, AT)).optimum()["starts"]
    found = bands.Rounding(master, SETTINGS).run()

    assert _worth(Relaxed(master.model, SETTINGS).best()[1]) == optimum + 72_000  # kin starts, and not own
    assert _worth(found.objective) == optimum
    assert _worth(found.bound) == optimum + 54_000  # a quarter of own has all back: three of kin


@st.composite
def mixed(draw: worlds.Draw) -> World:
    """Runs of several types and owners, here and there, beside that claim."""
    own = draw(st.sampled_from([2, 4]))
    waiting = [_run("wide", 8, "org:a:x", 0), doc.merge(_run("own", own, "org:a:x", 0), WEST)]
    for number in range(draw(st.integers(1, 4))):
        gpus, owner = draw(st.sampled_from([2, 4, 8])), draw(st.sampled_from(["org:a:y", "org:a:x"]))
        where = draw(st.sampled_from([WEST, {}]))
        waiting.append(doc.merge(_run(f"r{number}", gpus, owner, draw(st.integers(0, 8))), where))
    return World([*BEFORE, *waiting], BEFORE)


def _same(world: World) -> None:
    snapshot = world.snapshot()
    fine = planner.master_of(snapshot, AT, last=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recall_flows, "FINE", 0)
        master = planner.master_of(snapshot, AT, last=False)
    parts = Parts.after(master.model, master.flows.near)
    if parts is None:  # nothing may give way
        return
    relaxed = Relaxed(master.model, SETTINGS)
    values, root = [relaxed.best()[1]], relaxed.basis()
    while parts.together:
        relaxed.add(parts.of(parts.together[::2]))
        relaxed.go_to(root)  # of fewer columns and rows
        values.append(relaxed.best()[1])

    assert values == pytest.approx(sorted(values, reverse=True))
    assert values[-1] == pytest.approx(Relaxed(fine.model, SETTINGS).best()[1])


def test_with_all_told_apart_it_is_the_model_that_tells_types_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    plan_as_large(monkeypatch)
    _same(APART)
    for some in (mixed(), worlds.worlds("recall")):
        examples(WORLDS)(given(some)(_same))()
