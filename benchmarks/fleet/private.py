"""Budgets that meet nowhere but on the nodes: many small families, each with purses of its own and nothing above."""

from typing import Final

from benchmarks.fleet.dice import Dice
from benchmarks.fleet.money import Budget, Envelope
from benchmarks.fleet.room import Domain

QUOTA: Final = 1.15
"""Quotas of a region's flavor over its GPUs: money and room both bind."""
COHORTS: Final = 5
QUEUES: Final = 6
QUEUE_GPUS: Final = 20
"""What one owner of a cohort holds, as in Kueue's scheduler benchmark."""


def build_private(owners: int, domains: list[Domain], dice: Dice) -> list[Budget]:
    """Families of one to three owners. Every owner has one or two envelopes, each of one flavor in one region."""
    pools: dict[tuple[str, str], int] = {}
    for domain in domains:
        key = domain.region, domain.flavor
        pools[key] = pools.get(key, 0) + domain.free
    names: list[str] = []
    while len(names) < owners:
        root = f"org:lab{len(names):03d}"
        names += [root, f"{root}:a", f"{root}:b"][: dice.between(1, 4)]
    wants: dict[tuple[str, str], dict[str, float]] = {key: {} for key in sorted(pools)}
    for owner in names[:owners]:
        for _ in range(dice.between(1, 3)):
            wants[dice.weighted(sorted(pools), [pools[key] for key in sorted(pools)])][owner] = dice.lognormal(0, 0.5)
    budgets = {owner: Budget(owner, [], []) for owner in names[:owners]}
    for (region, flavor), weights in wants.items():
        for owner, weight in weights.items():
            quota = 8 * max(1, round(QUOTA * pools[region, flavor] * weight / sum(weights.values()) / 8))
            budgets[owner].envelopes.append(
                Envelope(owner, f"{flavor.lower()}-{region}", flavor, {"region": region}, quota)
            )
    return list(budgets.values())


def build_cohorts(domains: list[Domain]) -> list[Budget]:
    """Five families of six owners that share all they have, and a root that holds next to nothing."""
    flavor = domains[0].flavor
    budgets = []
    for cohort in range(COHORTS):
        root = f"org:cohort{cohort}"
        budgets.append(Budget(root, [Envelope(root, "none", flavor, {"region": "*"}, 1, shared=False)], []))
        for queue in range(QUEUES):
            owner = f"{root}:queue{queue}"
            budgets.append(Budget(owner, [Envelope(owner, "quota", flavor, {"region": "*"}, QUEUE_GPUS)], []))
    return budgets
