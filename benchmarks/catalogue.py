"""The named worlds that are measured, and what is done on each."""

import hashlib
from typing import Final, Literal

import msgspec

from benchmarks.fleet.recipe import DAYS, EQUAL, HOURS, ODD, Recipe

What = Literal["cycle", "pair", "dates", "hang"]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One row. ``what``: a cycle; a pair of cycles a minute apart, the second on what the first left; such a pair with
    its ``dates``, and one without; a cycle whose solver hangs after its first plan. ``bound_of``: the case whose bound
    is this one's too, where the clock cuts it short. ``quick``: part of the default run."""

    name: str
    recipe: Recipe
    what: What = "cycle"
    bound_of: str = ""
    quick: bool = False


def _small(**changes: object) -> Recipe:
    return msgspec.structs.replace(Recipe(gpus=10_000, pending=1_000, owners=100), **changes)


def _large(**changes: object) -> Recipe:
    return msgspec.structs.replace(Recipe(gpus=100_000, pending=10_000, owners=200), **changes)


CASES: Final = (
    Case(name="full-1k", recipe=Recipe(gpus=1_000, pending=100, owners=20), quick=True),
    *(Case(name=f"full-10k-{seed}", recipe=_small(seed=seed), quick=seed == 1) for seed in (1, 2, 3)),
    Case(name="full-30k", recipe=Recipe(gpus=30_000, pending=3_000, owners=150)),
    Case(name="full-100k-1", recipe=_large(), what="pair", quick=True),
    Case(name="full-100k-2", recipe=_large(seed=2)),
    Case(name="full-300k", recipe=Recipe(gpus=300_000, pending=30_000, owners=400)),
    Case(name="third-100k", recipe=_large(running=0.3)),
    Case(name="empty-100k", recipe=_large(running=0.0)),
    *(Case(name=f"odd-10k-{seed}", recipe=_small(grain=ODD, seed=seed), quick=seed == 1) for seed in (1, 2)),
    Case(name="odd-100k", recipe=_large(grain=ODD)),
    *(
        Case(
            name=f"tight-10k-{seed}",
            recipe=_small(budgets="private", running=0.0, ages=DAYS, seed=seed),
            quick=seed == 1,
        )
        for seed in (1, 2)
    ),
    Case(name="tight-100k", recipe=_large(budgets="private", running=0.0, ages=DAYS)),
    Case(name="equal-10k", recipe=_small(ages=EQUAL), quick=True),
    Case(name="days-10k", recipe=_small(ages=DAYS), quick=True),
    Case(name="hours-10k", recipe=_small(ages=HOURS), quick=True),
    Case(name="equal-100k", recipe=_large(ages=EQUAL)),
    Case(name="hours-100k", recipe=_large(ages=HOURS)),
    Case(
        name="cohorts",
        recipe=Recipe(gpus=800, pending=15_000, owners=30, budgets="cohorts", running=0.0),
        quick=True,
    ),
    Case(name="promises-10k", recipe=_small(held=100), what="dates"),
    Case(name="promises-100k", recipe=_large(held=200), what="dates"),
    Case(name="deadline-1s-100k", recipe=_large(deadline=1), bound_of="full-100k-1", quick=True),
    Case(name="hang-10k", recipe=_small(deadline=5), what="hang", bound_of="full-10k-1", quick=True),
)
"""In the order of the tables; a case comes after the one whose bound it takes."""


def fresh(commit: str) -> tuple[Case, ...]:
    """Ten fleets of 10,000 GPUs and five of 100,000 that nobody can have looked at before.

    Their seeds are the first 4-byte words of SHA-256(``commit``), the id of what is measured, then of its own
    digest."""
    digest = hashlib.sha256(commit.encode()).digest()
    digest += hashlib.sha256(digest).digest()
    seeds = [int.from_bytes(digest[4 * i : 4 * i + 4], "big") for i in range(10)]
    small = (Case(name=f"fresh-10k-{seed}", recipe=_small(seed=seed)) for seed in seeds)
    return *small, *(Case(name=f"fresh-100k-{seed}", recipe=_large(seed=seed)) for seed in seeds[:5])


def chosen(names: list[str], *, everything: bool) -> list[Case]:
    """The cases of these names, or all, or the quick ones. Raises KeyError with the first name that is unknown.

    A case that takes another's bound brings it along."""
    if not names:
        return [case for case in CASES if case.quick or everything]
    known = {case.name: case for case in CASES}
    wanted = {name for each in names for name in (each, known[each].bound_of)}
    return [case for case in CASES if case.name in wanted]
