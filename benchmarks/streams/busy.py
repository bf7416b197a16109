"""A busy small world, cycle after cycle: does anything go, or move, to no purpose or back and forth?

    python -m benchmarks.streams.busy [--cycles 1000]

Five nodes of 8 GPUs in two domains, three owners who may each use all of it, a cycle a minute. Every other minute a run
arrives: fixed, malleable or opportunistic, most without an end that is known, half of them waiting again when they are
cut. Every plan is passed by the checker. A cut is needless if without it alone every promise that was due and kept in
that cycle could still have been placed, at its run's least width, beside what later promises hold (`unneeded`). What
must be nothing is asserted; the figures go to ``results/busy.md``, anew every 100 cycles.
"""

import argparse
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, Final

import msgspec

from benchmarks import machine
from benchmarks.cycles.tables import table
from benchmarks.streams import kueue
from benchmarks.streams.unneeded import CUTS, Cut, unneeded
from cronjobs.cycle import run_cycle
from exporters.lake.lake import Lake
from jobtree.api import API_VERSION, Time
from jobtree.api.kinds.reservation import ReservationStatus
from jobtree.cluster.memory import Memory
from jobtree.cluster.protocol import Ref, Write
from jobtree.world.plan import Plan
from jobtree.world.reading.intake import Intake
from simulator.jobtree import ORIGIN, Here

BEGIN: Final = int(Time.parse("2026-01-05T00:00:00Z"))
GPUS: Final = 8
"""Of a node."""
DOMAIN: Final = {f"n{number}": f"d{number % 2}" for number in range(5)}
ROOM: Final = {domain: GPUS * nodes for domain, nodes in Counter(DOMAIN.values()).items()}
"""GPUs by domain."""
OWNERS: Final = ("a", "b", "c")
RESULTS: Final = Path(__file__).parents[1] / "results" / "busy.md"
SOON: Final = 300
"""Seconds within which a run that is shrunk should not grow back, nor one that grew be shrunk."""
PAGE: Final = """# A busy world, {date}

Measured on {on}.

{cycles:,} cycles of a minute (`benchmarks/streams/busy.py` says of which world), {seconds:.2f} CPU seconds a cycle in
the mean, the checker's and the writes' among them.

A cut is needless if without it alone every promise that was due and kept in that cycle could still have been placed, at
its run's least width, beside what later promises hold; what opportunistic work leaves without a promise, if without
that all funded starts could.

{table}
"""

Place = tuple[Time | None, tuple[str, ...]]
"""When and on which nodes a run is promised to start."""


@dataclass
class Seen:
    """``count``: see `FIGURES`; ``stood``: times and places of each promise so far; ``cut``: how often runs were drawn;
    ``needless``: cuts that were, and when.

    A flap is a run that shrinks for a promise within `SOON` of growing, or grows within it of shrinking.
    """

    count: Counter[str] = field(default_factory=Counter)
    stood: dict[tuple[str, str], list[Place]] = field(default_factory=lambda: defaultdict(list))
    needless: list[tuple[Time, Cut]] = field(default_factory=list)
    cut: Counter[tuple[str, str]] = field(default_factory=Counter)
    was_quiet: bool = False
    _widths: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)

    def take(self, before: Intake, plan: Plan) -> None:
        """What one more plan did; ``before``: what the cluster held."""
        count, at = self.count, plan.at
        for lease in plan.leases:
            self._width(lease.run_key, lease.spec.reason, at)
        count["starts"] += len({each.run_key for each in plan.leases if each.spec.reason == "Start"})
        leases = {(each.namespace, each.name): each for each in before.leases}
        kept, lost = set[str](), defaultdict[str, set[tuple[str, str]]](set)
        for closure in plan.closures:
            if closure.reason in CUTS:
                run = leases[closure.namespace, closure.name].run_key
                lost[closure.reason].add(run)
                self._width(run, closure.reason, at)
                kept |= {closure.made_room_for} - {""}
        for reason, runs in lost.items():
            count[reason] += len(runs)
            self.cut.update(runs if reason == "Lottery" else ())
        count["promises kept by cuts"] += len(kept)
        self.needless += [(Time(at), cut) for cut in unneeded(ROOM, DOMAIN, before, plan)]
        count["needless"] = len(self.needless)
        count["promised"] += len(plan.reservations)
        for made in plan.reservations:
            self._moved((made.namespace, made.name), made.status)
        is_quiet = plan.changed < at and not plan.leases and not plan.closures
        is_still, self.was_quiet = is_quiet and self.was_quiet, is_quiet
        for update in plan.promises:
            if update.status.stands and self._moved((update.namespace, update.name), update.status):
                count["still"] += is_still

    def _moved(self, key: tuple[str, str], status: ReservationStatus) -> bool:
        """Note where a promise stands; did it move?"""
        at, nodes = status.earliest_start, status.intended_slice.nodes if status.intended_slice else ()
        before = self.stood[key]
        if before[-1:] == [(at, nodes)]:
            return False
        moved = bool(before)
        if moved:
            self.count["moves"] += 1
            self.count["places"] += before[-1][0] == at
            self.count["swings"] += (at, nodes) in before
            self.count["swings in time"] += before[-1][0] != at and (at, nodes) in before
        before.append((at, nodes))
        return moved

    def _width(self, run: tuple[str, str], what: str, at: int) -> None:
        if what not in ("Grow", "Shrink"):
            return
        before, since = self._widths.get(run, (what, at))
        self.count["flaps"] += before != what and at - since < SOON
        self._widths[run] = what, at


def _base() -> list[dict[str, Any]]:
    nodes = [kueue.node(node, domain, GPUS) for node, domain in DOMAIN.items()]
    budgets = [kueue.budget(name, "org", name, "default", GPUS * len(DOMAIN)) for name in OWNERS]
    spec = {
        "lottery": {"term": "30m"},
        "reservations": {"patience": "10m", "notice": "5m"},
        "retention": {"leases": "2h"},
    }
    return [
        *nodes,
        *budgets,
        {"apiVersion": API_VERSION, "kind": "Policy", "metadata": {"name": "default"}, "spec": spec},
    ]


def _run(chance: random.Random, number: int, at: int) -> dict[str, Any]:
    spec: dict[str, Any] = {"owner": f"org:{chance.choice(OWNERS)}", "runtime": {"requeue": chance.random() < 0.5}}
    gpus = chance.choice([2, 4, 8, 8])
    draw = chance.random()
    if draw < 0.3:
        gpus, spec["locality"] = 12, {"groupGPUs": 4}
        spec["malleable"] = {"minTotalGPUs": 4, "maxTotalGPUs": 12, "stepGPUs": 4}
    elif draw < 0.44:
        spec["funding"] = {"opportunistic": True}
    if chance.random() < 1 / 3:
        spec["runtime"]["timeLimit"] = "40m"
    spec["resources"] = {"gpuType": "GPU", "totalGPUs": gpus}
    metadata = {"name": f"r{number:05}", "namespace": "default", "creationTimestamp": str(Time(at))}
    return {"apiVersion": API_VERSION, "kind": "Run", "metadata": metadata, "spec": spec}


def play(cycles: int) -> Seen:
    """What so many cycles did."""
    chance, seen = random.Random(7), Seen()
    text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": _base()})
    cluster, begun = Memory(text, BEGIN), process_time()
    with TemporaryDirectory() as folder:
        lake = Lake(folder, "busy")
        for minute in range(cycles):
            at = BEGIN + 60 * minute
            cluster.at = Time(at)
            if chance.random() < 0.5:
                body = _run(chance, minute, at)
                cluster.write(
                    [Write("create", Ref("Run", "default", body["metadata"]["name"]), body)], cluster.revision
                )
                seen.count["runs"] += 1
            before = cluster.read()
            plan = run_cycle(cluster, at, lake, Here(), origin=ORIGIN).plan
            if plan is not None:
                seen.take(before, plan)
            if (minute + 1) % 100 == 0 or minute + 1 == cycles:
                write(seen, minute + 1, process_time() - begun)
    return seen


def write(seen: Seen, cycles: int, seconds: float) -> None:
    """The page on so many cycles, in CPU ``seconds``."""
    rows = [(what, f"{seen.count[key]:,}") for what, key in FIGURES.items()]
    rows.append(("runs that were drawn more than once", f"{sum(times > 1 for times in seen.cut.values()):,}"))
    page = PAGE.format(
        date=datetime.now(UTC).date(), on=machine.sentence(machine.describe()), cycles=cycles, seconds=seconds / cycles,
        table=table(("what", "how often"), rows),
    )  # fmt: skip
    RESULTS.write_text(page, encoding="utf-8")


def main() -> None:
    """Entry point: plays it, writes the page, and fails where something went or moved to no purpose."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streams.busy")
    parser.add_argument("--cycles", type=int, default=1000)
    seen = play(parser.parse_args().cycles)
    print(RESULTS.read_text(encoding="utf-8"))
    assert not any(seen.count[each] for each in ("needless", "still")), (seen.count, seen.needless)


FIGURES: Final = {
    "runs that arrive": "runs",
    "starts": "starts",
    "promises made": "promised",
    "promises for which something was cut": "promises kept by cuts",
    "cuts that were needless": "needless",
    "runs that lost unfunded work": "ReclaimUnfunded",
    "runs that shrank for one": "Shrink",
    "runs that were drawn for one": "Lottery",
    "moves of promises": "moves",
    "of these, of the place alone": "places",
    "of these, back to a time and place that it had before": "swings",
    "and of these in turn, with another time between": "swings in time",
    "in the second of two cycles in which nothing happened": "still",
    "runs that grew and shrank within 5 minutes": "flaps",
}


if __name__ == "__main__":
    main()
