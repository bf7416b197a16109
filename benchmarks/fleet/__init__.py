"""Synthetic fleets of any size: legal state files to plan on, the same bytes for the same recipe.

Synthesised: nodes, domains, owners, budgets, and everything of a run but its size and duration, which are draws from
the Philly trace (``benchmarks.sizes``). Every cap is kept at every second, with a full period of look-ahead, each slot
is held once, groups lie in one domain and pods on one node, so a planner may change nothing about the running work.

``recipe`` says what a fleet is like, ``dice`` draws. ``room`` has nodes and domains, ``owners``, ``private`` and
``money`` who may pay, ``draw``, ``job`` and ``runs`` what runs and waits; ``manifests`` writes it all as objects.
"""

from pathlib import Path
from typing import Final

from benchmarks.fleet.dice import Dice
from benchmarks.fleet.manifests import write
from benchmarks.fleet.money import Budget
from benchmarks.fleet.owners import build_budgets
from benchmarks.fleet.private import build_cohorts, build_private
from benchmarks.fleet.recipe import Recipe
from benchmarks.fleet.room import FLAVORS, Domain, build_domains
from benchmarks.fleet.runs import World
from benchmarks.sizes import read

AT: Final = 1768219200
"""The fleets' own time, 2026-01-12T12:00:00Z: plan them at it."""


def build(recipe: Recipe) -> World:
    """The fleet of a recipe."""
    dice = Dice(f"fleet/{recipe.gpus}/{recipe.seed}")
    domains = build_domains(recipe.gpus, FLAVORS[:1] if recipe.budgets == "cohorts" else FLAVORS)
    world = World(AT, recipe, domains, _budgets(recipe, domains, dice), read(), dice)
    world.fill(recipe.running)
    world.queue(recipe.pending)
    return world


def _budgets(recipe: Recipe, domains: list[Domain], dice: Dice) -> list[Budget]:
    if recipe.budgets == "cohorts":
        return build_cohorts(domains)
    if recipe.budgets == "private":
        return build_private(recipe.owners, domains, dice)
    return build_budgets(recipe.owners, domains, AT, dice)


def write_fleet(path: Path, recipe: Recipe) -> None:
    """Build a fleet and write it as a state file."""
    write(build(recipe), path)
