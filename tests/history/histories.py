"""Random histories, small and nasty: caps of a few hundred GPU-seconds, windows and loans of half a minute.

A family of three, a lender that may be a stranger, two regions; runs that start under all kinds of funding; cycles
early and late; and between them Budgets edited, broken, deleted and made again, rates, discounts and retention changed,
work completed, cancelled, suspended, resumed and deleted.
"""

from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st

from tests.history.play import Step
from tests.support import documents as doc
from tests.support.documents import Document, merge
from tests.support.times import T0, rfc3339, unix

START: Final = unix(T0)
OWNERS: Final = ("org", "org:a", "org:a:x", "corp")
GUEST: Final = "org:b"
"""Has use caps and no envelope, if it has a Budget."""
BORN: Final = rfc3339(START - 3600)
FIXED: Final = ("r0", "r1", "r2", "r3", "r4")
MALLEABLE: Final = ("m0", "m1", "m2")
"""These are never deleted: of a Run that is gone from a file nobody knows that it was malleable."""
LATER: Final = ("r3", "r4", "m2")
"""Runs that come after the first cycle, if at all."""


def _made(document: Document, name: str) -> Document:
    """With the metadata that a server gives."""
    return merge(document, {"metadata": {"uid": f"uid-{name}", "creationTimestamp": BORN}})


def _some(strategy: st.SearchStrategy[Any], often: int = 2) -> st.SearchStrategy[Any]:
    """Nothing, or one time in ``often`` something."""
    return st.integers(1, often).flatmap(lambda number: strategy if number == 1 else st.none())


HOURS: Final = st.integers(1, 90).map(lambda number: number / 1000)
"""3.6 to 324 GPU-seconds."""
CREDITS: Final = st.integers(1, 50).map(lambda number: number / 10)
OFFSETS: Final = st.integers(-30, 150).map(lambda number: rfc3339(START + number))


@st.composite
def envelopes(draw: st.DrawFn, name: str) -> Document:
    """An envelope with any of what bounds it."""
    said: dict[str, Any] = {
        "selector": {"region": draw(st.sampled_from(["*", "*", "east", "west"]))},
        "scope": draw(st.sampled_from([None, None, "subtree"])),
        "sharing": draw(st.sampled_from([None, "family", "family", "none"])),
        "maxGPUHours": draw(_some(HOURS)),
        "maxCredits": draw(_some(CREDITS, 4)),
        "start": draw(_some(OFFSETS, 4)),
        "end": draw(_some(OFFSETS, 4)),
        "preActivation": draw(_some(st.just({"allowAdmission": True}), 3)),
        "lending": draw(_some(lending())),
    }
    made = {key: value for key, value in said.items() if value is not None}
    if "start" in made and "end" in made and made["end"] <= made["start"]:
        del made["end"]
    concurrency = draw(st.integers(1, 8))
    if {"maxGPUHours", "start", "end"} <= made.keys():
        span = unix(made["end"]) - unix(made["start"])
        made["maxGPUHours"] = min(made["maxGPUHours"], concurrency * span // 4 / 1000)  # less than all of its window
    return doc.envelope(concurrency, name, **made)


@st.composite
def lending(draw: st.DrawFn) -> Document:
    """What an envelope lends."""
    said = {
        "maxConcurrency": draw(_some(st.integers(1, 4))),
        "maxGPUHours": draw(_some(HOURS, 3)),
        "maxDuration": f"{draw(st.integers(5, 90))}s",
    }
    return {"allow": draw(st.sampled_from([True, True, False])), **{k: v for k, v in said.items() if v is not None}}


@st.composite
def budgets(draw: st.DrawFn, owner: str) -> Document:
    """A Budget of one or two envelopes, sometimes with a cap over them or over what its runs use, or other parents,
    seldom a broken one; that of the guest has nothing but a cap over what its runs use.
    """
    if owner == GUEST:
        return _made(doc.budget(owner, [], useCaps=[draw(uses())]), owner)
    names = ["one", "two"][: draw(st.integers(1, 2))]
    made = [draw(envelopes(name)) for name in names]
    if draw(st.integers(1, 8)) == 8:
        made[0]["concurrency"] = 0
    caps = {
        "maxConcurrency": draw(_some(st.integers(1, 8))),
        "maxGPUHours": draw(_some(HOURS)),
        "maxCredits": draw(_some(CREDITS, 4)),
    }
    cap = {"name": "all", "envelopes": names, **{key: value for key, value in caps.items() if value is not None}}
    said: dict[str, Any] = {"aggregateCaps": [cap] if draw(st.integers(1, 3)) == 1 else []}
    if draw(st.integers(1, 4)) == 4:
        said["useCaps"] = [draw(uses())]
    if draw(st.integers(1, 4)) == 4:
        above = st.sampled_from([*OWNERS[: OWNERS.index(owner)], "ghost"])  # no cycle, whatever other Budgets name
        said["parents"] = draw(st.lists(above, max_size=2, unique=True))
    return _made(doc.budget(owner, made, **said), owner)


@st.composite
def uses(draw: st.DrawFn) -> Document:
    """A cap over what runs of an owner use, with any of what bounds them."""
    said = {
        "scope": draw(st.sampled_from([None, None, "own"])),
        "selector": draw(_some(st.sampled_from([{"region": "east"}, {"region": "west"}, {"region": "*"}]))),
        "maxConcurrency": draw(_some(st.integers(0, 8))),
        "maxGPUHours": draw(_some(HOURS)),
        "maxCredits": draw(_some(CREDITS, 4)),
        "start": draw(_some(OFFSETS, 4)),
        "end": draw(_some(OFFSETS, 4)),
    }
    made = {key: value for key, value in said.items() if value is not None}
    if "start" in made and "end" in made and made["end"] <= made["start"]:
        del made["end"]
    bounds = made.keys() & {"maxConcurrency", "maxGPUHours", "maxCredits"}
    return {"name": "use", **made, **({} if bounds else {"maxConcurrency": 6})}


@st.composite
def runs(draw: st.DrawFn, name: str) -> Document:
    """A Run of up to 4 GPUs, with or without spares, a limit, a sponsor."""
    gpus = draw(st.integers(1, 4))
    shape: dict[str, Any] = {}
    if name in MALLEABLE:
        shape = {"locality": {"groupGPUs": 1}, "malleable": {"minTotalGPUs": 1, "maxTotalGPUs": gpus, "stepGPUs": 1}}
    elif draw(st.integers(1, 3)) == 1:
        shape = {"locality": {"groupGPUs": gpus}, "spares": 1}
    limit = draw(_some(st.integers(5, 120)))
    funding = draw(
        st.sampled_from([None, {"allowBorrow": True, "sponsors": ["corp", "org:a"]}, {"opportunistic": True}])
    )
    spec = {**shape, "runtime": {"timeLimit": f"{limit}s"} if limit else None, "funding": funding}
    made = doc.run(name, gpus, draw(st.sampled_from(["org:a:x", "org:a:x", "org:a", "org:b", "corp:c"])))
    return _made(merge(made, {"spec": spec}), name)


def policies() -> st.SearchStrategy[Document]:
    """Credit rates, the discount of spares, a look-ahead short enough to run into caps, and how long leases stay."""
    return st.builds(
        lambda period, kept, discount, rates: _made(
            doc.policy(
                accountingPeriod=f"{period}s",
                retention={"leases": kept},
                spares={"discount": discount},
                creditRates=rates,
            ),
            "policy",
        ),
        st.integers(1, 20),
        st.sampled_from(["7d", "7d", "0s", "10s", "1m"]),
        st.sampled_from([0.5, 0.5, 0.333, 1, 0]),
        st.sampled_from([{}, {doc.FLAVOR: 36}, {doc.FLAVOR: 36}, {doc.FLAVOR: 90.5}]),
    )


def changes(fresh: st.SearchStrategy[Document], since: int, at: int) -> st.SearchStrategy[dict[str, Any]]:
    """One thing that people do between two cycles."""
    done = st.integers(since, at).map(lambda when: {"rq.davidlangworthy.io/completed": rfc3339(when)})
    run, owner = st.sampled_from([*FIXED, *MALLEABLE]), st.sampled_from([*OWNERS, GUEST])
    ended = st.one_of(
        done.map(lambda annotation: {"metadata": {"annotations": annotation}}),
        st.sampled_from(["Cancelled", "Suspended", "Active"]).map(lambda state: {"spec": {"state": state}}),
    )
    return st.one_of(
        st.builds(lambda each: {"put": [each]}, owner.flatmap(budgets)),
        st.builds(lambda each: {"put": [each]}, owner.flatmap(budgets)),
        st.builds(lambda each: {"put": [each]}, policies()),
        st.builds(lambda each: {"put": [each]}, fresh),
        st.builds(lambda name, patch: {"patches": [("Run", name, patch)]}, run, ended),
        st.builds(lambda name: {"gone": [("Budget", name.replace(":", "-"))]}, owner),
        st.builds(lambda name: {"gone": [("Run", name)]}, st.sampled_from(FIXED)),
    )


@st.composite
def histories(draw: st.DrawFn) -> list[Step]:
    """Three to six cycles."""
    nodes = [
        merge(doc.node(f"{region[0]}{number}", 4, domain=region), {"metadata": {"labels": {"region": region}}})
        for region in ("east", "west")
        for number in (1, 2)
    ]
    world = [*nodes, draw(policies()), *(draw(budgets(owner)) for owner in OWNERS)]
    world += [draw(runs(name)) for name in (*FIXED, *MALLEABLE) if name not in LATER]
    steps = [Step(START, put=world)]
    fresh = st.one_of(*(runs(name) for name in LATER))
    for _ in range(draw(st.integers(2, 5))):
        since, at = steps[-1].at, steps[-1].at + draw(st.sampled_from([1, 2, 7, 20, 45, 90, 400]) | st.integers(1, 100))
        done: Sequence[dict[str, Any]] = draw(st.lists(changes(fresh, since, at), max_size=3))
        parts = {
            name: [each for change in done for each in change.get(name, ())] for name in ("put", "patches", "gone")
        }
        steps.append(Step(at, **parts))
    return steps
