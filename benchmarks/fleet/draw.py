"""What runs are like: sizes and durations from the distribution, dressed with groups, pods, elasticity and funding."""

from typing import Any, Final

from benchmarks.fleet.dice import Dice
from benchmarks.fleet.job import Job
from benchmarks.fleet.money import HOUR, Envelope, Treasury
from benchmarks.fleet.recipe import Recipe
from benchmarks.sizes import Sizes

LIMITS: Final = (1, 4, 12, 24, 72, 168, 336, 720, 1440, 2880)
"""Hours that people ask for."""
GANGS: Final = ((64, 40), (128, 25), (256, 15), (512, 10), (1024, 6), (2048, 4))
"""GPUs of gangs and how frequent each is; at most a twelfth of the fleet (64 always)."""
COHORT_SIZES: Final = ((1, 350), (5, 100), (20, 50))
SINGLE_DOMAIN: Final = 128
"""GPUs that a run held together in one domain has at most."""


class Draws:
    """A stream of runs of a recipe."""

    def __init__(self, recipe: Recipe, sizes: Sizes, treasury: Treasury, gpus: int, dice: Dice) -> None:
        """``gpus``: of the whole fleet."""
        self.recipe, self.sizes, self.treasury, self.dice = recipe, sizes, treasury, dice
        self._gangs = [gang for gang in GANGS if gang[0] <= max(64, gpus // 12)]
        budgets = list(treasury.budgets.values())
        above = {budget.owner.rpartition(":")[0] for budget in budgets}
        self._users = [b for b in budgets if recipe.budgets == "private" or b.owner not in above]
        lean = {root: (2.5, 1.0, 0.5)[i % 3] for i, root in enumerate(sorted({b.owner.split(":")[1] for b in budgets}))}
        self._appetite = [
            sum(e.concurrency for e in b.envelopes) * lean[b.owner.split(":")[1]] * dice.lognormal(0, 0.6)
            for b in self._users
        ]
        self._lenders = sorted({e.owner for b in budgets for e in b.envelopes if e.lending})

    def draw(self, name: str, *, gang: bool = False) -> tuple[Job, Envelope]:
        """A new Job and the envelope its owner has in mind for it."""
        if self.recipe.budgets == "cohorts":
            return self._plain(name)
        budget = self.dice.weighted(self._users, self._appetite)
        left = [8 + max(0, 2 * e.concurrency - e.limits[0].held2) for e in budget.envelopes]
        envelope = self.dice.weighted(budget.envelopes, left)
        gpus, seconds = self.sizes.draw(self.dice.u(), self.dice.u())
        if gang:  # a day in the middle, most within half a day and a week
            gpus, seconds = self._gang(envelope), int(HOUR * self.dice.lognormal(3.2, 1.1))
        job = Job(name, budget, envelope.flavor, gpus, max(120, min(seconds, 60 * 24 * HOUR)))
        self._dress(job)
        return job, envelope

    def _plain(self, name: str) -> tuple[Job, Envelope]:
        budget = self.dice.among(self._users)
        (envelope,) = budget.envelopes
        gpus = self.dice.weighted([size for size, _ in COHORT_SIZES], [count for _, count in COHORT_SIZES])
        job = Job(name, budget, envelope.flavor, gpus, 3600)
        job.runtime = self._times(job)
        return job, envelope

    def _gang(self, envelope: Envelope) -> int:
        if self.recipe.budgets == "private":
            return 8 * max(1, round(envelope.concurrency * (1 + self.dice.u()) / 24))
        return self.dice.weighted([gpus for gpus, _ in self._gangs], [weight for _, weight in self._gangs])

    def _dress(self, job: Job) -> None:
        self._divide(job)
        dice = self.dice
        count = job.gpus // job.group if job.group else 1
        if count > 1 and dice.chance(0.2):
            play = max(1, count // 4)
            low, high = max(1, count - play * dice.between(1, 3)), count + play
            widths = {"minTotalGPUs": low, "maxTotalGPUs": high, "stepGPUs": 1}
            job.malleable = {key: job.group * n for key, n in widths.items()}
            if dice.chance(0.3):
                job.malleable["desiredTotalGPUs"] = job.gpus
        elif count > 1 and job.gpus <= SINGLE_DOMAIN:
            job.spread = not dice.chance(0.12)
        if job.group and not job.pod and dice.chance(0.16):
            job.spares = 1 if job.group < 16 or dice.chance(0.8) else 2
        if dice.chance(0.08):
            job.funding = self._borrow(job)
        elif job.gpus <= 8 and dice.chance(0.03):
            job.funding = {"opportunistic": True}
        job.runtime = self._times(job)

    def _divide(self, job: Job) -> None:
        """Groups and pods of the recipe's grain."""
        grain, dice = self.recipe.grain, self.dice
        if grain.odd and job.gpus >= 16:
            job.group = dice.among(grain.groups)
            job.gpus = job.group * max(1, round(job.gpus / job.group))
        elif grain.odd and job.gpus > 1:
            job.gpus += dice.between(0, 4) - 1
        elif job.gpus >= 16:
            job.group = dice.among([group for group in grain.groups if job.gpus % group == 0] or [0])
        base = job.group or job.gpus
        for pod, chance in zip(grain.pods, (0.5, 0.2, 0.2), strict=False):
            if not job.pod and base % pod == 0 and dice.chance(chance):
                job.pod = pod

    def _borrow(self, job: Job) -> dict[str, Any]:
        """One or two sponsors outside the family that lend this flavor; nothing if chance finds none."""
        owner = job.budget.owner
        found = [
            lender
            for lender in (self.dice.among(self._lenders) for _ in range(6 if self._lenders else 0))
            if lender.split(":")[1] != owner.split(":")[1]
            and any(e.flavor == job.flavor and e.lends_to(owner) for e in self.treasury.budgets[lender].envelopes)
        ]
        sponsors = list(dict.fromkeys(found))[: self.dice.between(1, 3)]
        if not sponsors:
            return {}
        bound = {"maxBorrowGPUs": max(1, job.gpus // self.dice.between(1, 3))} if self.dice.chance(0.7) else {}
        return {"allowBorrow": True, "sponsors": sponsors, **bound}

    def _times(self, job: Job) -> dict[str, int]:
        """runtime in seconds: a limit on the ladder above the true duration, and a guess of it that may be off."""
        limit = HOUR * next((h for h in LIMITS if h * HOUR > job.seconds), job.seconds // HOUR + 1)
        guess = int(job.seconds * self.dice.lognormal(0, 0.4))
        times = {"expected": limit if self.dice.chance(0.1) else max(60, min(limit, guess)), "timeLimit": limit}
        if job.seconds > HOUR and self.dice.chance(0.85):
            times["checkpoint"] = self.dice.among((600, 1800, 3600))
        return times
