"""Owners in four levels and their Budgets: projects hold quota, teams bound some of it, units and roots keep pools."""

from typing import Any

from benchmarks.fleet.dice import Dice
from benchmarks.fleet.money import Budget, Envelope
from benchmarks.fleet.room import Domain

DAY = 86400
LEVELS = (
    ("alpha", "beta", "gamma"),
    ("research", "product", "platform", "cloud", "labs", "growth"),
    ("vision", "speech", "ranking", "nlp", "video", "robotics", "bio", "code"),
    ("pretrain", "tune", "serve", "distill", "eval", "ablate", "reward", "batch"),
)
Pools = dict[tuple[str, str], dict[str, int]]
"""(region, flavor) -> GPUs per cluster."""


def owner_tree(count: int, dice: Dice) -> list[list[str]]:
    """``count`` owners, level by level: 3 roots, 6 %, 16 % and the rest; each above the last has a child at least."""
    roots = min(len(LEVELS[0]), max(1, count // 6))
    units = max(roots, round(0.06 * count))
    teams = max(units, round(0.16 * count))
    levels = [[f"org:{name}" for name in LEVELS[0][:roots]]]
    for names, size in zip(LEVELS[1:], (units, teams, max(teams, count - roots - units - teams)), strict=True):
        above, level = levels[-1], []
        for i in range(size):
            parent = above[i] if i < len(above) else above[int(dice.u() ** 1.5 * len(above))]
            again = i // len(names)
            level.append(f"{parent}:{names[i % len(names)]}{again or ''}")
        levels.append(level)
    return levels


def build_budgets(owners: int, domains: list[Domain], at: int, dice: Dice) -> list[Budget]:
    """A Budget for every owner. Quotas of the projects add up to about the fleet; pools and reserves come on top."""
    pools: Pools = {}
    for d in domains:
        clusters = pools.setdefault((d.region, d.flavor), {})
        clusters[d.cluster] = clusters.get(d.cluster, 0) + 8 * len(d.nodes)
    pools = {key: pools[key] for key in sorted(pools)}
    roots, units, teams, projects = owner_tree(owners, dice)
    budgets = {o: Budget(o, [], []) for level in (roots, units, teams, projects) for o in level}
    _quotas(projects, budgets, pools, at, dice)
    for owner in projects:
        _aggregate(budgets[owner], dice)
    for level, name, share in ((teams, "cap", 0.95), (units, "pool", 0.08)):
        for owner in level:
            for (region, flavor), below in _held(owner, projects, budgets).items():
                if level is units or dice.chance(0.4):
                    envelope = Envelope(
                        owner, f"{_slug(flavor)}-{region}-{name}", flavor, {"region": region}, _eights(share * below),
                        subtree=level is teams,
                    )  # fmt: skip
                    budgets[owner].envelopes.append(envelope)
    for owner in roots:
        for flavor in sorted({f for _, f in pools}):
            total = sum(sum(c.values()) for (_, f), c in pools.items() if f == flavor)
            budgets[owner].envelopes.append(
                Envelope(owner, f"{_slug(flavor)}-reserve", flavor, {"region": "*"}, _eights(0.03 * total))
            )
    for budget in budgets.values():
        if not budget.envelopes:
            budget.envelopes.append(Envelope(budget.owner, "scratch", domains[0].flavor, {"region": "*"}, 8))
    return list(budgets.values())


def _quotas(projects: list[str], budgets: dict[str, Budget], pools: Pools, at: int, dice: Dice) -> None:
    regions = sorted({region for region, _ in pools})
    wants: dict[tuple[str, str], dict[str, float]] = {key: {} for key in pools}
    for owner in projects:
        size, home = dice.lognormal(0, 0.8), dice.among(regions)
        second = dice.among(regions) if dice.chance(0.3) else home
        for region, flavor in pools:
            likely = {"H100-80GB": 0.9, "A100-80GB": 0.5}.get(flavor, 0.3)
            if region in (home, second) and dice.chance(likely):
                wants[region, flavor][owner] = size * (1.0 if region == home else 0.4)
    for (region, flavor), weights in wants.items():
        if not weights:
            weights[dice.among(projects)] = 1.0
        clusters = pools[region, flavor]
        for owner, weight in weights.items():
            quota = _eights(sum(clusters.values()) * weight / sum(weights.values()))
            selector = {"region": region}
            if dice.chance(0.2):
                selector["cluster"] = dice.among(sorted(clusters))
                quota = min(quota, clusters[selector["cluster"]])
            terms = _terms(quota, at, dice)
            name = f"{_slug(flavor)}-{region}"
            budgets[owner].envelopes.append(Envelope(owner, name, flavor, selector, quota, **terms))


def _terms(quota: int, at: int, dice: Dice) -> dict[str, Any]:
    """A window of some weeks with hours for a quarter, lending for a seventh, a closed purse for a twentieth."""
    terms: dict[str, Any] = {}
    if dice.chance(0.25):
        midnight = at - at % DAY
        start, end = midnight - DAY * dice.between(3, 28), midnight + DAY * dice.between(3, 28)
        terms |= {"start": start, "end": end, "hours": int(quota * (end - start) // 3600 * (0.6 + 0.4 * dice.u()))}
    if dice.chance(0.15):
        to = [f"org:{LEVELS[0][0]}:*"] if dice.chance(0.3) else ["*"]
        terms["lending"] = {"allow": True, "to": to, "maxConcurrency": _eights(quota / 4)}
    if dice.chance(0.05):
        terms["shared"] = False
    return terms


def _aggregate(budget: Budget, dice: Dice) -> None:
    """Half of the projects with two envelopes of one flavor may use only nine tenths of both together."""
    for flavor in sorted({e.flavor for e in budget.envelopes}):
        mine = [e for e in budget.envelopes if e.flavor == flavor]
        if len(mine) > 1 and dice.chance(0.5):
            budget.aggregates.append(
                {
                    "name": f"{_slug(flavor)}-all",
                    "flavor": flavor,
                    "envelopes": [e.name for e in mine],
                    "maxConcurrency": _eights(0.9 * sum(e.concurrency for e in mine)),
                }
            )


def _held(owner: str, projects: list[str], budgets: dict[str, Budget]) -> dict[tuple[str, str], int]:
    """Concurrency of the projects below ``owner`` per (region, flavor), sorted."""
    held: dict[tuple[str, str], int] = {}
    for project in projects:
        if project.startswith(owner + ":"):
            for e in budgets[project].envelopes:
                key = e.selector["region"], e.flavor
                held[key] = held.get(key, 0) + e.concurrency
    return {key: held[key] for key in sorted(held)}


def _slug(flavor: str) -> str:
    return flavor.lower()


def _eights(gpus: float) -> int:
    return 8 * max(1, -int(-gpus // 8))
