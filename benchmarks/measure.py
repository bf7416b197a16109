"""One planning cycle, measured phase by phase in a fresh process: ``python -m benchmarks.measure FILE AT``.

The phases are a cycle's own functions, called in its order on a copy of FILE; the planner runs in this process, so that
its CPU time and memory are counted. Prints a `Measured` as JSON.
"""

import shutil
import sys
import tempfile
from pathlib import Path

import msgspec

from benchmarks.clock import Clock, Span
from exporters.lake import Lake
from exporters.writes import writes_for
from jobtree.check import check
from jobtree.cluster.statefile import StateFile
from jobtree.world.plan import Plan, Stage
from jobtree.world.snapshot import Snapshot, take
from planner import Planning


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What a cycle took and what it reached.

    ``weighted``: Σ over the started runs of Active GPUs × (``age.unit`` + min(age, ``age.cap``)), GPU-seconds (spec §4,
    stage 3), counted here from the plan's leases; ``greedy`` and ``greedy_weighted``: the same of the first incumbent.
    """

    gpus: int
    running_gpus: int
    pending_runs: int
    pending_gpus: int
    spans: dict[str, Span]
    stages: list[Stage]
    started_runs: int
    started_gpus: int
    weighted: int
    greedy_runs: int
    greedy_gpus: int
    greedy_weighted: int
    violations: int
    writes: int


def measure(source: Path, at: int) -> Measured:
    """Run the cycle of Unix second ``at`` on a copy of ``source``."""
    clock = Clock()
    with tempfile.TemporaryDirectory() as folder:
        path = shutil.copy(source, Path(folder) / source.name)
        cluster, lake = StateFile(path, at), Lake(Path(folder) / "lake")
        with clock.span("read"):
            intake = cluster.read()
        with clock.span("snapshot"):
            snapshot = take(intake)
        with clock.span("tables"):
            lake.write_tables(snapshot)
        planning = Planning(snapshot, at)
        found = planning.incumbents()
        with clock.span("greedy"):
            first = best = next(found)
        with clock.span("plan"):
            for better in found:
                best = better
            plan = planning.finish(best)
        with clock.span("check"):
            violations = check(snapshot, plan)
        with clock.span("write"):
            writes = writes_for(intake, plan)
            cluster.write(writes, intake.revision)
        with clock.span("record"):
            lake.write_cycle(snapshot, plan)
    runs, leases = snapshot.tables["runs"].to_pylist(), snapshot.tables["leases"].to_pylist()
    busy = {(row["namespace"], row["run"]) for row in leases if not row["closed"]}
    waiting = [row for row in runs if row["outcome"] is None and (row["namespace"], row["name"]) not in busy]
    active = sum(len(row["ordinals"]) for row in leases if not row["closed"] and row["role"] == "Active")
    reached, at_first = _reached(snapshot, plan), _reached(snapshot, planning.finish(first))
    return Measured(
        gpus=sum(snapshot.tables["nodes"].column("gpus").to_pylist()),
        running_gpus=active,
        pending_runs=len(waiting),
        pending_gpus=sum(row["total"] for row in waiting),
        spans=clock.spans,
        stages=plan.stages,
        started_runs=reached[0],
        started_gpus=reached[1],
        weighted=reached[2],
        greedy_runs=at_first[0],
        greedy_gpus=at_first[1],
        greedy_weighted=at_first[2],
        violations=len(violations),
        writes=len(writes),
    )


def _reached(snapshot: Snapshot, plan: Plan) -> tuple[int, int, int]:
    """(runs, GPUs, weighted GPU-seconds) that a plan starts with money."""
    age = snapshot.policy.spec.age
    created = {(r["namespace"], r["name"]): r["created"] for r in snapshot.tables["runs"].to_pylist()}
    gpus: dict[tuple[str, str], int] = {}
    for lease in plan.leases:
        spec = lease.spec
        if spec.reason == "Start" and spec.slice.role == "Active" and spec.paid_by is not None:
            key = lease.namespace, spec.run_ref.name
            gpus[key] = gpus.get(key, 0) + len(spec.slice.nodes)
    weighted = sum(n * (int(age.unit) + min(plan.at - created[key], int(age.cap))) for key, n in gpus.items())
    return len(gpus), sum(gpus.values()), weighted


def main() -> None:
    """Entry point of the child process."""
    result = measure(Path(sys.argv[1]), int(sys.argv[2]))
    sys.stdout.buffer.write(msgspec.json.encode(result))


if __name__ == "__main__":
    main()
