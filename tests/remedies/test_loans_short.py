"""What is short where sponsors lend and running work has lost its payer: what is said starts the run, no less does.

A cap that rises pays what runs unfunded before any start, so its number has that in it; of a cap that need not rise, or
that the run does not use, nothing is asked.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from planner.planning import plan
from planner.remedies.bench import Bench
from tests.reference.worlds import AT, World
from tests.remedies.raising import MONEY, raised
from tests.support import documents as doc
from tests.support.drawing import Draw
from tests.support.effort import examples

CREATED = "2025-12-31T20:00:0{}Z"


def run(number: int, owner: str, gpus: int, **spec: Any) -> doc.Document:
    """A run, the older the lower its number."""
    name = f"r{number}"
    metadata = {"uid": f"uid-{name}", "creationTimestamp": CREATED.format(number)}
    return doc.merge(doc.run(name, gpus, owner), {"spec": spec, "metadata": metadata})


def lender(owner: str, gpus: int, lent: int, **lending: Any) -> doc.Document:
    """A Budget that lends so many of its GPUs."""
    return doc.budget(owner, [doc.envelope(gpus, lending={"allow": True, "maxConcurrency": lent, **lending})])


def borrows(*sponsors: str, **more: Any) -> dict[str, Any]:
    """The funding of a run that may borrow from them."""
    return {"allowBorrow": True, "sponsors": [*sponsors], **more}


@st.composite
def lending_worlds(draw: Draw) -> World:
    """Runs with spares on loan, an hour later with edited Budgets and more runs."""

    def number(least: int, most: int) -> int:
        drawn: int = draw(st.integers(least, most))
        return drawn

    def one(place: int) -> doc.Document:
        owner = draw(st.sampled_from(["org:a", "org:a", "org:b", "org:b:x"]))
        spec: dict[str, Any] = {"spares": number(0, 2) or None}
        if owner == "org:a":
            most = {"maxBorrowGPUs": number(1, 6)} if number(0, 4) == 0 else {}
            spec["funding"] = borrows(*draw(st.permutations(["org:b", "org:c"])), **most)
        gpus = draw(st.sampled_from([1, 2, 3, 4, 6, 8]))
        if gpus % 2 == 0 and draw(st.booleans()):
            spec["locality"] = {"groupGPUs": gpus // 2}
        return run(place, owner, gpus, **spec)

    fleet = [doc.node(f"n{place}") for place in range(4)]
    policy = doc.policy(spares={"discount": draw(st.sampled_from([0, 0.25, 0.5, 1]))})
    own = [number(4, 14), number(1, 6), number(2, 8)]
    lent = [number(2, 8), number(1, 5)]
    age = draw(st.sampled_from([{}, {"maxDuration": "30m"}]))

    def budgets(change: list[int]) -> list[doc.Document]:
        gpus, loans = ([max(1, each + by) for each, by in zip(many, change, strict=False)] for many in (own, lent))
        others = doc.budget("org:a", [doc.envelope(gpus[1])])
        return [lender("org:b", gpus[0], loans[0], **age), others, lender("org:c", gpus[2], loans[1])]

    before = [one(place) for place in range(number(0, 3))]
    later = [one(place) for place in range(5, 5 + number(1, 2))]
    now = budgets([number(-3, 3) for _ in own])
    if not before:
        return World([*fleet, *now, *later, policy])
    since = draw(st.sampled_from([None, AT - 3601]))
    return World([*fleet, *now, *before, *later, policy], [*fleet, *budgets([0, 0, 0]), *before, policy], since)


def wrong(world: World) -> list[str]:
    """Waits whose numbers do not start their run, or one less of which does.

    Beside starts that recall, what is short counts what they take back (spec §3.9): less may do in the next cycle.
    Nothing at all may do where a loan that starts keeps others from recalling: the least rise is said then, 1.
    """
    now = world.snapshot()
    current = plan(now, AT)
    recalls = any(stage.value for stage in current.stages if stage.name == "overdraw")
    found = []
    for wait in current.waits:
        if not wait.shorts or any(short.rule not in MONEY for short in wait.shorts):
            continue
        key = (wait.namespace, wait.name)
        bench = Bench.of(now, current, key)
        enough = bench.within(raised(bench.focus, key, wait.shorts, {})).starts()
        rises = [each for each in wait.shorts if sum(short.amount for short in wait.shorts) > 1]
        less = [each for each in rises if bench.within(raised(bench.focus, key, wait.shorts, {each: 1})).starts()]
        if not enough or (less and not recalls):
            found.append(f"{wait.name}: {wait.message}")
    return found


@examples(40)
@given(lending_worlds())
def test_what_is_short_is_the_least_that_is_enough(world: World) -> None:
    assert wrong(world) == []


def test_n5_a_rise_pays_first_what_runs_unfunded() -> None:
    """r1 is unfunded since the envelope was cut from 3 to 2; a rise of 2 for the 4 that wait would pay it."""
    fleet = [doc.node(f"n{place}") for place in range(4)]
    before, after = (doc.budget("org:a", [doc.envelope(gpus)]) for gpus in (3, 2))
    r1, r2 = run(1, "org:a", 3), run(2, "org:a", 4)
    world = World([*fleet, after, r1, r2, doc.policy()], [*fleet, before, r1, doc.policy()])

    (wait,) = plan(world.snapshot(), AT).waits

    paid_first = "3 GPUs that run unfunded would be paid first"
    assert wait.message == f"Asks for 4 GPUs: 5 GPUs short at org-a/gpus (0 of 2 in use; {paid_first})."
    assert wrong(world) == []


def lent_world(later: list[doc.Document], cap: int = 8, duration: str = "30m", since: int | None = None) -> World:
    """org:b, which lends 4 of its GPUs, runs r0 of 3; a loan of 2 (r1) is an hour old; ``later`` is submitted now."""
    fleet = [doc.node(f"n{place}") for place in range(4)]
    budgets = [lender("org:b", cap, 4, maxDuration=duration), doc.budget("org:a", [doc.envelope(1)])]
    before = [run(0, "org:b", 3), run(1, "org:a", 3, funding=borrows("org:b"))]
    return World([*fleet, *budgets, *before, *later, doc.policy()], [*fleet, *budgets, *before, doc.policy()], since)


def said(world: World) -> list[str]:
    """What is said of the runs that wait, in a world where each number is the least that is enough."""
    assert wrong(world) == []
    return [f"{wait.name}: {wait.message}" for wait in plan(world.snapshot(), AT).waits]


def test_a_rise_may_recall_what_this_cycle_could_not_beside_its_starts() -> None:
    """The loan of 2 came since the world changed. Once the cap rises by 1 it gives way to r6: 3 + 3 of r5 + 3 are 9."""
    world = lent_world([run(5, "org:b:x", 3), run(6, "org:b:x", 3)], since=AT - 3601)

    assert said(world) == ["r6: Asks for 3 GPUs: 1 GPU short at org-b/gpus (8 of 8 in use)."]


def test_a_young_loan_that_starts_keeps_no_older_one_from_being_recalled() -> None:
    """r5 borrows 1 beside all that runs; a cap of 12 holds that, 3 and 8, and the old loan of 2 gives way to r6."""
    world = lent_world([run(5, "org:a", 1, funding=borrows("org:b")), run(6, "org:b", 8)])

    assert said(world) == ["r6: Asks for 8 GPUs: 4 GPUs short at org-b/gpus (6 of 8 in use)."]


def test_an_old_loan_that_starts_keeps_its_elders() -> None:
    """Where loans are not for a time, r5 stands behind the loan of 2, and neither gives way in that world."""
    world = lent_world([run(5, "org:a", 1, funding=borrows("org:b")), run(6, "org:b", 8)], duration="0s")

    assert said(world) == ["r6: Asks for 8 GPUs: 6 GPUs short at org-b/gpus (6 of 8 in use)."]


def test_a_rise_pays_what_runs_unfunded_beside_what_starts() -> None:
    """4 on loan lost their payer as org:b lends 1, no longer 4; r2 borrows that 1. A rise by 3 leaves them 3."""
    fleet = [doc.node(f"n{place}") for place in range(4)]
    mine = doc.budget("org:a", [doc.envelope(1)])
    before, after = ([lender("org:b", 12, lent, maxDuration="30m"), mine] for lent in (4, 1))
    old, *new = (run(each, "org:a", gpus, funding=borrows("org:b")) for each, gpus in ((1, 5), (2, 1), (3, 3)))
    world = World([*fleet, *after, old, *new, doc.policy()], [*fleet, *before, old, doc.policy()])

    assert said(world) == ["r3: Asks for 3 GPUs: 3 GPUs short at the lending cap of org-b/gpus (1 of 1 in use)."]
