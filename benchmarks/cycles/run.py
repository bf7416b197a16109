"""A case measured: its cycles, each from a state file to the written plan, and the baselines beside them."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from benchmarks import fleet
from benchmarks.catalogue import Case
from benchmarks.cycles.baselines import Baseline
from benchmarks.cycles.cycle import Usage, Used
from benchmarks.load import world
from exporters.lake.lake import Lake, beside, read_manifest, read_plan, read_snapshot
from exporters.plans import planjson
from jobtree.world.plan import Plan, Stage
from jobtree.world.tables.snapshot import Snapshot
from planner.search.certificates import Step

LATER = 60
"""Seconds between the two cycles of a pair."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a world holds."""

    gpus: int
    running_runs: int
    running_gpus: int
    pending_runs: int
    pending_gpus: int


class Cycle(msgspec.Struct, frozen=True, kw_only=True):
    """What a cycle took and what it reached.

    ``wall``: seconds from the start of the process to its end; ``phases``: seconds of wall time, as the lake's manifest
    has them; ``value``: Σ over the runs started with money of Active GPUs × (``age.unit`` + min(age, ``age.cap``)),
    GPU-seconds, counted here from the plan's leases; ``bound``: what no plan can beat.
    """

    wall: float
    parent: Usage
    child: Usage
    phases: dict[str, float]
    truncated: bool
    stages: list[Stage]
    started_runs: int
    started_gpus: int
    value: int
    bound: int

    @property
    def cpu(self) -> float:
        """CPU seconds of both processes."""
        return self.parent.cpu + self.child.cpu


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """A case: its world, its cycles (two of a pair) and what simple orders reach (none where another case has them).

    ``undated``: a pair without forecast and promises, on a copy of the world that has none; ``steps``: what each part
    of the search leaves of the leading stage, in the first cycle."""

    case: Case
    facts: Facts
    cycles: list[Cycle]
    baselines: list[Baseline]
    steps: list[Step] = []
    undated: list[Cycle] = []


def measure(case: Case) -> Measured:
    """Measure a case on a copy of its world. Exits with the command's own words where a cycle fails."""
    source = world(case.recipe)
    with tempfile.TemporaryDirectory() as folder:
        state = Path(shutil.copy(source, folder))
        times = (fleet.AT, fleet.AT + LATER) if case.what in ("pair", "dates") else (fleet.AT,)
        cycles = [_cycle(state, at, case.name, *(["hang"] if case.what == "hang" else [])) for at in times]
        snapshot, _ = read_snapshot(Lake(beside(state)).manifest_path(fleet.AT))
        without = Path(shutil.copy(source, Path(folder, "undated.json")))
        undated = [_cycle(without, at, case.name, "undated") for at in (times if case.what == "dates" else ())]
    return Measured(
        case=case,
        facts=_facts(snapshot),
        cycles=cycles,
        baselines=[] if case.bound_of else _baselines(source),
        steps=[] if case.bound_of else _steps(source),
        undated=undated,
    )


def _cycle(state: Path, at: int, name: str, *planner: str) -> Cycle:
    began = time.perf_counter()
    printed = _child(["benchmarks.cycles.cycle", str(state), str(at), *planner], name)
    used = msgspec.json.decode(printed.splitlines()[-1], type=Used)
    wall = time.perf_counter() - began
    manifest = Lake(beside(state)).manifest_path(at)
    snapshot, _ = read_snapshot(manifest)
    plan = planjson.decode(read_plan(manifest))
    runs, gpus, value = reached(snapshot, plan)
    return Cycle(
        wall=round(wall, 2),
        parent=used.parent,
        child=used.child,
        phases={name: round(seconds, 3) for name, seconds in read_manifest(manifest).timings.items()},
        truncated=plan.truncated,
        stages=plan.stages,
        started_runs=runs,
        started_gpus=gpus,
        value=value,
        bound=next(stage.bound for stage in plan.stages if stage.name == "starts"),
    )


def _baselines(source: Path) -> list[Baseline]:
    return msgspec.json.decode(
        _child(["benchmarks.cycles.baselines", str(source), str(fleet.AT)], source.stem), type=list[Baseline]
    )


def _steps(source: Path) -> list[Step]:
    return msgspec.json.decode(
        _child(["benchmarks.cycles.steps", str(source), str(fleet.AT)], source.stem), type=list[Step]
    )


def _child(argv: list[str], name: str) -> bytes:
    """The output of a module run in a fresh process, its numerical libraries on one thread as the planner's are."""
    env = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # what is measured is not the compiling of modules
    done = subprocess.run([sys.executable, "-m", *argv], check=False, capture_output=True, env=env)
    if done.returncode:
        said = done.stderr.decode().strip().rpartition("\n")[2]
        sys.exit(f"{name}: {argv[0]} ended with exit code {done.returncode}: {said}")
    return done.stdout


def _facts(snapshot: Snapshot) -> Facts:
    runs, leases = snapshot.tables["runs"].to_pylist(), snapshot.tables["leases"].to_pylist()
    busy = {(row["namespace"], row["run"]) for row in leases if not row["closed"]}
    waiting = [row for row in runs if row["outcome"] is None and (row["namespace"], row["name"]) not in busy]
    return Facts(
        gpus=sum(snapshot.tables["nodes"].column("gpus").to_pylist()),
        running_runs=len(busy),
        running_gpus=sum(len(row["ordinals"]) for row in leases if not row["closed"] and row["role"] == "Active"),
        pending_runs=len(waiting),
        pending_gpus=sum(row["total"] for row in waiting),
    )


def reached(snapshot: Snapshot, plan: Plan) -> tuple[int, int, int]:
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
