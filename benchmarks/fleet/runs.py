"""A fleet at one moment: runs started legally at a random moment of their life, and runs that wait."""

from collections.abc import Iterator
from typing import Final

from benchmarks.fleet.dice import Dice
from benchmarks.fleet.draw import Draws
from benchmarks.fleet.job import Job
from benchmarks.fleet.money import Budget, Envelope, Treasury
from benchmarks.fleet.recipe import Recipe
from benchmarks.fleet.room import Domain, Place, Seat
from benchmarks.sizes import Sizes

GANG_SHARE: Final = 0.35
"""Of the running GPUs, in gangs."""
PENDING_GANGS: Final = {"family": 0.04, "private": 0.9, "cohorts": 0.0}
"""Of the pending runs, by kind of budgets."""


class World:
    """Domains, Budgets, what runs and what waits, at one moment."""

    def __init__(
        self, at: int, recipe: Recipe, domains: list[Domain], budgets: list[Budget], sizes: Sizes, dice: Dice
    ) -> None:
        self.at, self.recipe, self.domains, self.dice = at, recipe, domains, dice
        self.treasury = Treasury(budgets)
        self.gpus = sum(d.free for d in domains)
        self.running: list[Job] = []
        self.pending: list[Job] = []
        self._draws = Draws(recipe, sizes, self.treasury, self.gpus, dice)
        self._here: dict[tuple[str, Place], list[Domain]] = {}
        for d in domains:
            self._here.setdefault((d.flavor, d.place), []).append(d)

    def start(self, job: Job, envelope: Envelope) -> bool:
        """Start it at a random moment of its life, at one of its widths, near its envelope; False if not legal."""
        since = self.at - 1 - int(self.dice.u() * (job.seconds - 2))
        scatter = self.dice.u() if self.dice.chance(0.3) else 0.0
        for width in self._widths(job):
            spares = job.spares * len(job.groups(width))
            for place in [place for flavor, place in self._here if flavor == job.flavor and envelope.matches(place)][
                :2
            ]:
                time = since, self.at
                bill = self.treasury.pay(job.budget.owner, job.flavor, place, (width, spares), job.funding, time)
                if bill is None:
                    continue
                seats = self._seat(job, width, place, scatter)
                if seats is None:
                    for payment in bill:
                        payment.book(*time, sign=-1)
                    continue
                job.started, job.width, job.bill, job.seats = since, width, bill, seats
                job.created = since - self.dice.exponential(600)
                self.running.append(job)
                return True
        return False

    def _widths(self, job: Job) -> list[int]:
        if not job.malleable:
            return [job.gpus]
        low, high, step = (job.malleable[key] for key in ("minTotalGPUs", "maxTotalGPUs", "stepGPUs"))
        high = job.malleable.get("desiredTotalGPUs", high)
        return list(dict.fromkeys([low + step * self.dice.between(0, (high - low) // step + 1), low]))

    def _seat(self, job: Job, width: int, place: Place, scatter: float) -> list[Seat] | None:
        """Seats for all groups in the first domains that take them, from a random one on where ``scatter`` is not 0."""
        here = self._here[job.flavor, place]
        turn = int(scatter * len(here))
        domains = here[turn:] + here[:turn]
        if job.spread:
            return self._seat_groups(job, width, domains)
        return next(filter(None, (self._seat_groups(job, width, [d]) for d in domains)), None)

    def _seat_groups(self, job: Job, width: int, domains: list[Domain]) -> list[Seat] | None:
        seats: list[Seat] = []
        for i, gpus in enumerate(job.groups(width)):
            got = next(filter(None, (d.seat(i, gpus, job.pod, job.spares) for d in domains)), None)
            if got is None:
                for seat in reversed(seats):
                    seat.domain.leave([seat])
                return None
            seats += got
        return seats

    def fill(self, fraction: float) -> None:
        """Start runs beyond ``fraction`` of the GPUs, gangs first, then let some depart again, so that free GPUs lie
        scattered as in a living fleet."""
        goal, used, misses = (0.8 + 0.2 * fraction) * self.gpus * (fraction > 0), 0, 0
        names = self._names("run")
        gangs: list[tuple[Job, Envelope]] = []
        while sum(job.gpus for job, _ in gangs) < GANG_SHARE * fraction * self.gpus:
            gangs.append(self._draws.draw(next(names), gang=True))
        for job, envelope in sorted(gangs, key=lambda drawn: -drawn[0].gpus):
            if used + job.gpus <= goal and self.start(job, envelope):
                used += job.width
        while used < goal and misses < 400:
            job, envelope = self._draws.draw(next(names))
            if self.start(job, envelope):
                used, misses = used + job.width, 0
            else:
                misses += 1
        for job in self.dice.shuffled(self.running):
            if job.width <= used - fraction * self.gpus:
                used -= job.width
                self.running.remove(job)

    def queue(self, count: int) -> None:
        """Pending runs, as old as the recipe says; a thirtieth follow an earlier run of their namespace."""
        ages = self.recipe.ages
        names = self._names("new")
        for _ in range(count):
            job, _ = self._draws.draw(next(names), gang=self.dice.chance(PENDING_GANGS[self.recipe.budgets]))
            job.created = self.at - min(self.dice.exponential(ages.mean), ages.oldest)
            self.pending.append(job)
        before: dict[str, list[Job]] = {}
        for job in sorted(self.running + self.pending, key=lambda j: (j.created, j.name)):
            earlier = before.setdefault(job.budget.name, [])
            if job.started is None and earlier and self.dice.chance(0.03):
                job.after = [earlier[-1 - self.dice.between(0, min(8, len(earlier)))].name]
            earlier.append(job)

    @staticmethod
    def _names(stem: str) -> Iterator[str]:
        n = 0
        while True:
            yield f"{stem}-{n:06d}"
            n += 1
