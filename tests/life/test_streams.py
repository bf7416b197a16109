"""Whatever happens to a fleet, every invariant holds after every cycle (spec §9), and over all cycles together."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

import pytest
from hypothesis import given

from tests.history.play import Cluster, Played, Step
from tests.life.streams import streams
from tests.support import invariants
from tests.support.documents import Document
from tests.support.effort import examples
from tests.support.times import unix


@pytest.mark.slow
@examples(100)
@given(streams())
def test_every_invariant_holds_after_every_cycle_of_a_stream(steps: list[Step]) -> None:
    cluster = Cluster()
    cycles = []
    for step in steps:
        cluster.change(step)
        cycles.append(cluster.cycle(step.at))
        invariants.check(cycles[-1].before, cycles[-1].after, step.at)
    assert [*double_bookings(cycles[-1].after)] == []
    assert [*ended_otherwise(cycles)] == []


def leases(documents: Sequence[Document]) -> list[Document]:
    """All Leases."""
    return [each for each in documents if each["kind"] == "Lease"]


def double_bookings(documents: Sequence[Document]) -> Iterator[str]:
    """Active leases that shared a GPU for a second, be both closed by now."""
    spans: dict[str, list[tuple[int, float, str]]] = defaultdict(list)
    for lease in leases(documents):
        status, spec = lease["status"], lease["spec"]
        end = unix(status["ended"]) if status.get("closed") else float("inf")
        if spec["slice"].get("role", "Active") == "Active":
            for slot in spec["slice"]["nodes"]:
                spans[slot].append((unix(spec["interval"]["start"]), end, lease["metadata"]["name"]))
    for slot, held in spans.items():
        for (_, end, one), (start, _, other) in pairwise(sorted(held)):
            if start < end:
                yield f"{slot} was held by {one} and {other}"


def ended_otherwise(cycles: Sequence[Played]) -> Iterator[str]:
    """Leases that some later cycle closed again, or otherwise, or that no plan closed."""
    closed = {
        each["metadata"]["name"]: each["status"] for each in leases(cycles[-1].after) if each["status"].get("closed")
    }
    told: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for cycle in cycles:
        for closure in cycle.plan.closures:
            told[closure.name].append((closure.reason, closure.ended))
    for name in sorted(closed.keys() | told.keys()):
        found = [(closed[name]["closureReason"], unix(closed[name]["ended"]))] if name in closed else []
        if told[name] != found:
            yield f"{name} was closed as {told[name]} and is {found}"
