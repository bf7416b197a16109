"""Synthetic fleets of any size: legal state files to plan on, the same bytes for the same size and seed.

Synthesised: nodes, domains, owners, budgets, and everything of a run but its size and duration, which are draws from
the Philly trace (``benchmarks.sizes``). Every cap is kept at every second, with a full period of look-ahead, each slot
is held once, groups lie in one domain and pods on one node, so a planner may change nothing about the running work.
"""

from pathlib import Path

from benchmarks.fleet.dice import Dice
from benchmarks.fleet.manifests import write
from benchmarks.fleet.owners import build_budgets
from benchmarks.fleet.room import build_domains
from benchmarks.fleet.runs import World
from benchmarks.sizes import read

AT = 1768219200
"""The fleets' own time, 2026-01-12T12:00:00Z: plan them at it."""


def build(
    gpus: int, *, pending: int | None = None, owners: int | None = None, running: float = 0.85, seed: int = 1
) -> World:
    """A fleet of ``gpus`` GPUs, ``running`` of them in use, with one pending run per ten GPUs unless said otherwise."""
    dice = Dice(f"fleet/{gpus}/{seed}")
    domains = build_domains(gpus)
    people = owners or (20 if gpus < 5000 else 100 if gpus < 50000 else 200)
    world = World(AT, domains, build_budgets(people, domains, AT, dice), read(), dice)
    world.fill(running)
    world.queue(gpus // 10 if pending is None else pending)
    return world


def write_fleet(path: Path, gpus: int, *, seed: int = 1) -> None:
    """Build a fleet and write it as a state file."""
    write(build(gpus, seed=seed), path)
