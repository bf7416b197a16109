"""A shortage with its clause for people, and what asks for money that may be short."""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple, Protocol

from msgspec import structs

from jobtree.api.values.counted import counted
from jobtree.world.plan import Short
from planner.filling.purses import Demand
from policies.caps.uses import USE
from policies.inputs.money import Use
from policies.model.problem import Candidate, Problem

BORROW_PRICE: Final = 0.998
RUN_PRICE: Final = 0.9985
"""What a GPU of the run's own borrow limit, and of a limit on single runs, costs beside the price of a cap's family: of
equal rises those that concern fewest people are named first."""


@dataclass(frozen=True)
class Missing:
    """Shortage, and where it is, for people."""

    short: Short
    where: str

    @property
    def words(self) -> str:
        """A clause for people."""
        return f"{counted(self.short.amount, self.short.unit)} short {self.where}"

    @property
    def least(self) -> "Missing":
        """The least rise that is one: where any would do."""
        return replace(self, short=structs.replace(self.short, amount=1))

    def order(self) -> tuple[int, str, str]:
        """Largest first, then by what is short."""
        return -self.short.amount, self.short.subject, self.short.rule


class Gap(NamedTuple):
    """``price``: of all that is missing, in GPUs of rises; ``missing``: largest first."""

    price: float
    missing: list[Missing]


class Money(Protocol):
    """Finder of the money that is missing for a run, by where it lies."""

    def alike(self, candidate: Candidate) -> Hashable:
        """Equal for candidates whose prices are equal wherever they lie."""

    def by_region(self, candidate: Candidate, active: int, spare: int) -> dict[int, float]:
        """Prices of so many Active and spare GPUs if all of them lie in one region, by region."""

    def missing(self, candidate: Candidate, demand: Demand) -> Gap:
        """Find what is missing if they lie so."""


def missing_at(problem: Problem, number: int, rise: int, used: int, first: int = 0, *, recalls: bool) -> Missing:
    """The cap of this ``number`` would have to rise by ``rise`` (in its weighed unit), of which ``used`` is taken.

    ``first``: what running work that is unfunded takes of it, too, once it rises.

    ``recalls``: what starts of this plan recall there stands in the way (spec §3.9).
    """
    cap, promised = problem.book.caps[number], problem.spent.promised.get(number, 0)
    short = Short(
        rule=cap.name,
        subject=cap.subject,
        amount=-(-rise // cap.measure.scale),
        unit=cap.measure.unit,
    )
    return Missing(short, cap.words(used, first, promised=promised, recalls=recalls))


def over_borrow_limit(gpus: int, limit: int) -> Missing:
    """The run's own ``funding.maxBorrowGPUs`` binds."""
    words = f"at the run's own borrow limit (funding.maxBorrowGPUs {limit})"
    short = Short(rule="borrow", subject="funding.maxBorrowGPUs", amount=gpus, unit="GPU")
    return Missing(short, words)


def over_run_limit(gpus: int, label: str, limit: int) -> Missing:
    """An envelope's ``perRun.maxGPUs`` binds."""
    words = f"at {label}, which pays for {counted(limit, 'GPU')} of one run (perRun.maxGPUs)"
    return Missing(Short(rule="perRun", subject=label, amount=gpus, unit="GPU"), words)


def over_use_limit(use: Use, milli: int) -> Missing:
    """A use cap's ``perRun.maxGPUs`` binds, by so many milli-GPUs."""
    gpus, limit = -(-milli // 1000), counted(use.per_run_gpus or 0, "GPU")
    words = f"at {USE.named(use.label)}, which gives one run {limit} (perRun.maxGPUs)"
    short = Short(rule="use-perRun", subject=use.label, amount=gpus, unit="GPU")
    return Missing(short, words)
