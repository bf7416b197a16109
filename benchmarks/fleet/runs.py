"""Runs: drawn from the distribution of sizes, dressed with groups, pods, elasticity and funding, started legally."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from benchmarks.fleet.dice import Dice
from benchmarks.fleet.money import HOUR, Budget, Envelope, Payment, Treasury
from benchmarks.fleet.room import Domain, Place, Seat
from benchmarks.sizes import Sizes

LIMITS = (1, 4, 12, 24, 72, 168, 336, 720, 1440, 2880)  # hours that people ask for
GANGS = ((64, 40), (128, 25), (256, 15), (512, 10), (1024, 6), (2048, 4))
GANG_SHARE = 0.35
"""Of the running GPUs, in gangs of 64 and more."""
PENDING_GANGS = 0.04
"""Of the pending runs."""
SINGLE_DOMAIN = 128
"""GPUs that a run held together in one domain has at most."""


@dataclass(eq=False)
class Job:
    """A Run to be. ``started`` and what follows are set once it runs."""

    name: str
    budget: Budget
    flavor: str
    gpus: int
    seconds: int
    group: int = 0
    pod: int = 0
    spares: int = 0
    spread: bool = True
    malleable: dict[str, int] | None = None
    funding: dict[str, Any] = field(default_factory=dict)
    runtime: dict[str, int] = field(default_factory=dict)
    after: list[str] = field(default_factory=list)
    created: int = 0
    started: int | None = None
    width: int = 0
    bill: list[Payment] = field(default_factory=list)
    seats: list[Seat] = field(default_factory=list)

    def groups(self, width: int) -> list[int]:
        """GPUs of each group at this width."""
        size = self.group or width
        return [min(size, width - i) for i in range(0, width, size)]


class World:
    """Domains, Budgets, what runs and what waits, at one moment."""

    def __init__(self, at: int, domains: list[Domain], budgets: list[Budget], sizes: Sizes, dice: Dice) -> None:
        self.at, self.domains, self.sizes, self.dice = at, domains, sizes, dice
        self.treasury = Treasury(budgets)
        self.gpus = sum(d.free for d in domains)
        self.running: list[Job] = []
        self.pending: list[Job] = []
        self._here: dict[tuple[str, Place], list[Domain]] = {}
        for d in domains:
            self._here.setdefault((d.flavor, d.place), []).append(d)
        self._projects = [b for b in budgets if b.owner.count(":") == 4]
        lean = {root: (2.5, 1.0, 0.5)[i % 3] for i, root in enumerate(sorted({b.owner.split(":")[1] for b in budgets}))}
        self._appetite = [
            sum(e.concurrency for e in b.envelopes) * lean[b.owner.split(":")[1]] * dice.lognormal(0, 0.6)
            for b in self._projects
        ]
        self._lenders = sorted({e.owner for b in budgets for e in b.envelopes if e.lending})

    def draw(self, name: str, gang: int = 0) -> tuple[Job, Envelope]:
        """A new Job and the envelope its owner has in mind for it; ``gang``: its GPUs, 0 = as the distribution says."""
        budget = self.dice.weighted(self._projects, self._appetite)
        left = [8 + max(0, 2 * e.concurrency - e.limits[0].held2) for e in budget.envelopes]
        envelope = self.dice.weighted(budget.envelopes, left)
        gpus, seconds = self.sizes.draw(self.dice.u(), self.dice.u())
        if gang:  # a day in the middle, most within half a day and a week
            gpus, seconds = gang, int(HOUR * self.dice.lognormal(3.2, 1.1))
        job = Job(name, budget, envelope.flavor, gpus, max(120, min(seconds, 60 * 24 * HOUR)))
        self._dress(job)
        return job, envelope

    def gang(self) -> int:
        """GPUs of a gang, at most a twelfth of the fleet (64 always)."""
        fit = [g for g in GANGS if g[0] <= max(64, self.gpus // 12)]
        return self.dice.weighted([g for g, _ in fit], [w for _, w in fit])

    def _dress(self, job: Job) -> None:
        dice = self.dice
        if job.gpus >= 16:
            job.group = dice.among([g for g in (8, 16, 32) if job.gpus % g == 0] or [0])
        base = job.group or job.gpus
        if base % 8 == 0 and dice.chance(0.5):
            job.pod = 8
        elif base % 4 == 0 and dice.chance(0.2):
            job.pod = 4
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
        gangs: list[int] = []
        while sum(gangs) < GANG_SHARE * fraction * self.gpus:
            gangs.append(self.gang())
        for gpus in sorted(gangs, reverse=True):
            job, envelope = self.draw(next(names), gpus)
            if used + job.gpus <= goal and self.start(job, envelope):
                used += job.width
        while used < goal and misses < 400:
            job, envelope = self.draw(next(names))
            if self.start(job, envelope):
                used, misses = used + job.width, 0
            else:
                misses += 1
        for job in self.dice.shuffled(self.running):
            if job.width <= used - fraction * self.gpus:
                used -= job.width
                self.running.remove(job)

    def queue(self, count: int) -> None:
        """Pending runs, most of them young; a thirtieth follow an earlier run of their namespace."""
        names = self._names("new")
        for _ in range(count):
            job, _ = self.draw(next(names), self.gang() if self.dice.chance(PENDING_GANGS) else 0)
            job.created = self.at - min(self.dice.exponential(5400), 48 * HOUR)
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
