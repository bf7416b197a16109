"""Prices: what one more GPU or GPU-hour of a bound would be worth, and that no plan beats them."""

from collections.abc import Iterator
from typing import Final

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import planner
from jobtree.world.plan import Prices
from planner.effort import USUAL, Effort, Pricing
from planner.plan import prices
from planner.solver.highs import options
from planner.solver.ranging import Ranging
from tests.reference import worlds
from tests.reference.facts import read
from tests.reference.model import Reference
from tests.reference.worlds import AT, World, snapshot
from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.effort import examples

Found = dict[tuple[str, ...], tuple[float, float]]
"""(rule, subjects or domains) → what one more is worth in GPUs of a run just created, GPUs that it starts."""


def made(*documents: Document, hours: int = 1) -> list[Document]:
    """Documents as if made some hours ago."""
    return [doc.merge(doc.aged({}, hours), each) for each in documents]


def run(name: str, gpus: int, owner: str = "org:a", hours: int = 0) -> Document:
    """A run created so many hours ago."""
    return doc.aged(doc.run(name, gpus, owner), hours)


def of(effort: Effort, documents: list[Document]) -> Found:
    """The prices of a world's bounds."""
    found = planner.plan(snapshot(documents), AT, effort).prices
    assert found is not None
    return {
        (price.rule, *(price.domains or price.subjects)): (price.value / found.weight, price.milli_gpus / 1000)
        for price in found.bounds
    }


MANY: Final = Effort(exact=0)
"""As where many wait."""


@pytest.mark.parametrize("effort", [USUAL, MANY], ids=["few wait", "many wait"])
class TestWhatIsPriced:
    def test_a_cap_that_keeps_runs_out(self, effort: Effort) -> None:
        budget = doc.budget("org:a", [doc.envelope(12)])
        documents = made(*(doc.node(f"a{n}") for n in range(4)), budget)

        # The older run starts first; a GPU more admits one of the younger, which has waited half an age.
        assert of(effort, [*documents, run("old", 8, hours=24), run("new", 8, hours=12)]) == {
            ("concurrency", "org-a/gpus"): (1.5, 1.0)
        }

    def test_room_that_keeps_runs_out(self, effort: Effort) -> None:
        documents = made(doc.node("a1"), doc.node("b1", domain="d2"), doc.budget("org:a", [doc.envelope(64)]))

        assert of(effort, [*documents, *(run(f"r{n}", 8) for n in range(3))]) == {("capacity", "d1", "d2"): (1.0, 1.0)}

    def test_domains_of_one_label_are_told_apart_by_their_regions(self, effort: Effort) -> None:
        east = doc.merge(doc.node("b1"), {"metadata": {"labels": {"region": "us-east"}}})
        documents = made(doc.node("a1"), east, doc.budget("org:a", [doc.envelope(64)]))
        pinned = {"spec": {"locality": {"selector": {"region": "us-east"}}}}
        waiting = [doc.merge(run(f"r{n}", 8, hours=12 * n), pinned) for n in range(2)]

        assert of(effort, [*documents, *waiting]) == {("capacity", "us-east/c1/d1"): (1.0, 1.0)}

    def test_of_two_bounds_that_hold_together_neither(self, effort: Effort) -> None:
        documents = made(doc.node("a1"), doc.budget("org:a", [doc.envelope(8)]))

        assert of(effort, [*documents, run("one", 8), run("two", 8)]) == {}

    def test_an_hour_as_the_part_of_a_day_that_it_is(self, effort: Effort) -> None:
        timed = doc.envelope(64, maxGPUHours=24 * 12, sharing="none")
        documents = made(*(doc.node(f"a{n}") for n in range(4)), doc.budget("org:a", [timed]))

        assert of(effort, [*documents, run("one", 8), run("two", 8)]) == {
            ("hours", "org-a/gpus"): (3600 / 86400, 0.042)
        }

    def test_older_work_in_the_place_of_younger_starts_no_gpu_more(self, effort: Effort) -> None:
        alone = [
            doc.budget(owner, [doc.envelope(gpus, sharing="none")]) for owner, gpus in (("org:a", 8), ("org:b", 4))
        ]
        documents = made(doc.node("a1"), *alone)

        assert of(effort, [*documents, run("young", 8), run("old", 8, owner="org:b", hours=24)]) == {
            ("concurrency", "org-b/gpus"): (1.0, 0.0),
            ("capacity", "d1"): (1.0, 1.0),
        }

    def test_bounds_with_nothing_left(self, effort: Effort) -> None:
        budget = doc.budget("org:a", [doc.envelope(8)])
        other = doc.budget("org:b", [doc.envelope(8)])
        fleet = made(*(doc.node(f"a{n}") for n in range(4)), budget, other)
        full = World([*fleet, *made(run("runs", 8)), run("waits", 4)], [*fleet, *made(run("runs", 8))])

        assert of(effort, full.current()) == {("concurrency", "org-a/gpus"): (1.0, 1.0)}

        fleet = made(doc.node("a1"), doc.budget("org:a", [doc.envelope(64)]))
        busy = World([*fleet, *made(run("runs", 8)), run("waits", 4)], [*fleet, *made(run("runs", 8))])

        assert of(effort, busy.current()) == {("capacity", "d1"): (1.0, 1.0)}

    def test_a_gang_that_the_plan_keeps_back(self, effort: Effort) -> None:
        gang = {"gang": {"name": "pair", "size": 2}}
        resources = {"gpuType": None, "totalGPUs": None, "pods": 1, "cpuPerPod": "1", "memoryPerPod": "1Gi"}
        cpu = doc.merge(run("driver", 1), {"spec": gang | {"resources": resources}})
        documents = made(*(doc.node(f"a{n}") for n in range(4)), doc.budget("org:a", [doc.envelope(4)]))

        assert of(effort, [*documents, cpu, doc.merge(run("worker", 8), {"spec": gang})]) == {
            ("concurrency", "org-a/gpus"): (1.0, 1.0)
        }

    def test_nothing_where_nothing_waits(self, effort: Effort) -> None:
        documents = made(doc.node("a1"), doc.budget("org:a", [doc.envelope(8)]))
        assert planner.plan(snapshot(documents), AT, effort).prices is None


def test_caps_that_are_one_to_the_model_have_one_price() -> None:
    envelopes = [doc.envelope(2, "one"), doc.envelope(3, "two")]
    documents = made(*(doc.node(f"a{n}") for n in range(4)), doc.budget("org:a", envelopes))

    assert of(MANY, [*documents, run("r", 8)]) == {("concurrency", "org-a/one", "org-a/two"): (1.0, 1.0)}


def test_none_of_a_relaxation_with_too_many_terms() -> None:
    documents = made(doc.node("a1"), doc.budget("org:a", [doc.envelope(4)]))
    assert planner.plan(snapshot([*documents, run("r", 8)]), AT).prices is not None

    assert planner.plan(snapshot([*documents, run("r", 8)]), AT, Effort(pricing=Pricing(terms=2))).prices is None


def test_the_largest_are_listed_and_the_others_counted() -> None:
    owners = [f"org:{name}" for name in "abcd"]
    budgets = [doc.budget(owner, [doc.envelope(1)]) for owner in owners]
    runs = [run(f"r{n}", 4, owner, hours=12 * n) for n, owner in enumerate(owners)]
    documents = [*made(*(doc.node(f"a{n}") for n in range(4)), *budgets), *runs]
    found = planner.plan(snapshot(documents), AT, Effort(pricing=Pricing(listed=2))).prices

    assert found is not None
    assert [(price.subjects, price.value) for price in found.bounds] == [
        (("org-d/gpus",), 86400 + 36 * 3600), (("org-c/gpus",), 86400 + 24 * 3600)
    ]  # fmt: skip
    assert found.more == 2


def test_no_fraction_is_rounded_by_the_last_bits_of_a_float() -> None:
    noise = 1e-7
    fractions = [77_768 + part / of for of in range(1, 400) for part in range(of)]

    assert [value for value in fractions if prices._up(value - noise) != prices._up(value + noise)] == []
    assert [prices._up(value) for value in (7.0, 7.0001, 7.1, 7.5)] == [7, 7, 8, 8]


@pytest.mark.parametrize("kind", ["payers", "time", "recall"])
def test_a_basis_that_stays_says_what_solving_again_says(kind: str) -> None:
    @examples(10)
    @given(worlds.worlds(kind))
    def holds(world: World) -> None:
        planning = planner.Planning(world.snapshot(), AT, MANY)
        master = prices._master(planning.state, planning.waiting)
        assume(master is not None)
        assert master is not None
        ranging = Ranging(master.model, prices._gpus(master), options(0, 0.0, 0))
        asked = [bound.rises for bound in prices._bounds(master)]
        steady = [ranging.steady(rises) for rises in asked]
        again = [told and ranging.risen(rises) for rises, told in zip(asked, steady, strict=True)]
        assert again == [told and pytest.approx(told, abs=1e-6) for told in steady]

    holds()


def rises(documents: list[Document]) -> Iterator[tuple[str, str, list[Document]]]:
    """(rule, subject, the world in which it has one more) for every cap of the Budgets."""
    limits = {"concurrency": "concurrency", "maxConcurrency": "concurrency", "maxGPUHours": "hours"}
    limits["maxCredits"] = "credits"
    for place, budget in enumerate(documents):
        if budget["kind"] != "Budget":
            continue

        def more(part: str, number: int, patch: Document, at: int = place, of: Document = budget) -> list[Document]:
            parts = [doc.merge(each, patch if n == number else {}) for n, each in enumerate(of["spec"][part])]
            return [*documents[:at], doc.merge(of, {"spec": {part: parts}}), *documents[at + 1 :]]

        name = budget["metadata"]["name"]
        for number, each in enumerate(budget["spec"]["envelopes"]):
            subject, tree = f"{name}/{each['name']}", "subtree-" if each.get("scope") == "subtree" else ""
            for field, rule in limits.items():
                if field in each:
                    yield tree + rule, subject, more("envelopes", number, {field: each[field] + 1})
            if "lending" in each:
                lent = each["lending"]["maxConcurrency"] + 1
                yield "lending-concurrency", subject, more("envelopes", number, {"lending": {"maxConcurrency": lent}})
        for number, each in enumerate(budget["spec"].get("aggregateCaps", [])):
            most = {"maxConcurrency": each["maxConcurrency"] + 1}
            yield "aggregate-concurrency", f"{name}/{each['name']}", more("aggregateCaps", number, most)


def worth(found: Prices, rule: str, subject: str) -> int:
    """What one more of a bound is worth: of those that are not listed nothing."""
    return max((p.value for p in found.bounds if p.rule == rule and subject in (*p.subjects, *p.domains)), default=0)


@pytest.mark.parametrize(
    ("kind", "effort"),
    [("payers", USUAL), ("payers", MANY), ("time", MANY), ("ties", USUAL), ("recall", USUAL), ("recall", MANY)],
)
def test_no_plan_is_worth_more_than_prices_say(kind: str, effort: Effort) -> None:
    """The optimum of the reference, with one more of each cap, and with one more node as a domain of its own."""

    def optimum(documents: list[Document]) -> int:
        return Reference(read(snapshot(documents), AT)).optimum()["starts"]

    @examples(4)
    @given(worlds.worlds(kind), st.data())
    def holds(world: World, data: st.DataObject) -> None:
        documents = world.current()
        found = planner.plan(snapshot(documents), AT, effort).prices
        if found is None:
            return
        assert found.more == 0
        assert optimum(documents) <= found.relaxed
        raised = list(rises(documents))
        for rule, subject, more in data.draw(st.permutations(raised))[:3]:
            assert optimum(more) <= found.relaxed + worth(found, rule, subject)
        node = documents[0]
        labels = node["metadata"]["labels"]
        domain = labels["fabric.domain"]
        alike = {"metadata": {"name": "more", "labels": {"fabric.domain": "Z"}}}
        if {n["metadata"]["labels"]["tier"] for n in documents if _in(n, domain)} == {labels["tier"]}:
            gpus = int(node["status"]["allocatable"]["nvidia.com/gpu"])
            most = found.relaxed + gpus * worth(found, "capacity", domain)
            assert optimum([doc.merge(node, alike), *documents]) <= most

    holds()


def _in(each: Document, domain: str) -> bool:
    return each["kind"] == "Node" and bool(each["metadata"]["labels"]["fabric.domain"] == domain)
