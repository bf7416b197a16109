"""The present class of work: who is funded, in one pass over all claims (spec §3.5).

Order: loans within ``lending.maxDuration`` first (a loan is a contract), then by the claimant's standing with the
payer (owner, its children, siblings, parents, the rest), older loans last; within these by admission time, run,
envelope. A claim is funded iff every cap it touches still holds with it:

    fixed width:  all of it or nothing (skipped when it is too big)
    malleable:    group by group from 0, until a group does not fit
"""

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from typing import Final, NamedTuple

from jobtree.api.kinds.lease import FundingClass
from jobtree.world.naming.named import GONE_PAYER
from policies.caps.cap import CapBook, Lane
from policies.funding.ledger import Spent, lane_of, second_of
from policies.inputs.claims import UNFUNDED, Claim, LeaseKey, LeaseRow, RunKey, class_of, on_loan
from policies.inputs.money import Money

FRESH_LOAN: Final = -1
OLD_LOAN: Final = 5

Sums = dict[int, int]
"""Cap → a sum in the cap's own unit."""


class Place(NamedTuple):
    """Precedence of a claim in the pass."""

    standing: int
    admitted: int
    run: RunKey
    envelope: int


@dataclass(frozen=True, slots=True)
class Part:
    """Part that is funded together: a fixed claim, or one group of a malleable one.

    ``touched``: what it weighs per cap; ``second``: what its next second is charged per cap on hours or credits;
    ``follows``: the group before it belongs to the same claim and comes first.
    """

    place: Place
    follows: bool
    touched: Sums
    second: Sums
    leases: Sequence[LeaseRow]

    @property
    def gpus(self) -> int:
        """GPUs that it holds, Active and Spare."""
        return sum(lease.gpus for lease in self.leases)


Missed = Callable[[Part, Sequence[int], Sums], None]
"""What hears of a part that stays unfunded: per cap what is used before it, and charged for the next second."""


@dataclass(frozen=True)
class Pass:
    """The outcome of the pass over parts. ``used``: per cap, charged and taken, in the cap's unit."""

    funded: list[bool]
    used: list[int]


@dataclass(frozen=True)
class Funded:
    """The present of open ``leases``. ``parts``: of all claims whose envelope pays now; ``others``: class of leases
    that are in no part and not unfunded.
    """

    money: Money
    leases: Sequence[LeaseRow]
    others: Mapping[LeaseKey, FundingClass]
    parts: list[Part]
    outcome: Pass

    @cached_property
    def classes(self) -> dict[LeaseKey, FundingClass]:
        """(namespace, lease) → class."""
        others = {lease.key: self.others.get(lease.key, UNFUNDED) for lease in self.leases}
        return others | classes_of(self.money, self.parts, self.outcome.funded)

    @property
    def used(self) -> list[int]:
        """Per cap, what is charged and taken, in the cap's unit."""
        return self.outcome.used


def derive(book: CapBook, claims: list[Claim], leases: list[LeaseRow], spent: Spent, sites: dict[str, int]) -> Funded:
    """Classes of all open ``leases``; those whose payer is quarantined keep the class they have."""
    money = book.money
    kept = [each for each in leases if each.envelope == GONE_PAYER and each.budget in money.quarantined]
    parts = parts_of(book, claims, sites)
    outcome = honour(book, spent, parts)
    return Funded(money, leases, {lease.key: lease.funding_class for lease in kept}, parts, outcome)


def still_funded(
    before: Funded, book: CapBook, spent: Spent, leases: Sequence[LeaseRow], gone: Container[RunKey]
) -> Funded:
    """The classes of open ``leases`` without the claims of runs that are ``gone``, at a later time at which all others
    weigh the same as ``before``; loans that have aged since stand last.
    """
    money, parts = book.money, [part for part in before.parts if part.place.run not in gone]
    places = {part.place for part in parts if part.place.standing == FRESH_LOAN}
    aged = {each: each._replace(standing=OLD_LOAN) for each in places if not _is_young(money, each)}
    if aged:
        parts = [replace(part, place=aged.get(part.place, part.place)) for part in parts]
        parts.sort(key=attrgetter("place"))
    return Funded(money, leases, before.classes, parts, honour(book, spent, parts))


def _is_young(money: Money, place: Place) -> bool:
    return money.envelopes[place.envelope].is_young(money.at - place.admitted)


def classes_of(money: Money, parts: Sequence[Part], funded: Sequence[bool]) -> dict[tuple[str, str], FundingClass]:
    """(namespace, lease) → class of every lease in ``parts``."""
    found: dict[tuple[str, str], FundingClass] = {}
    for part, paid in zip(parts, funded, strict=True):
        found.update((lease.key, class_of(money, lease) if paid else UNFUNDED) for lease in part.leases)
    return found


def honour(book: CapBook, spent: Spent, parts: Sequence[Part], missed: Missed | None = None) -> Pass:
    """The pass over ``parts``, which stand in its order; ``missed`` hears of each that it leaves unfunded."""
    used = spent.used(len(book.caps))
    seconds: Sums = {}
    found: list[bool] = []
    for part in parts:
        fits = (not part.follows or found[-1]) and _fits(book, spent, used, seconds, part)
        found.append(fits)
        if not fits and missed is not None:
            missed(part, used, seconds)
        if fits:
            for cap, weight in part.touched.items():
                used[cap] += weight
            for cap, weight in part.second.items():
                seconds[cap] = seconds.get(cap, 0) + weight
    return Pass(found, used)


@dataclass
class Beyond:
    """What keeps a claim, or what of it is unfunded, from its payer: by cap, each in the cap's own unit.

    ``asked``: what the claim weighs there; ``used``: what the pass has honoured before it; ``first``: what unfunded
    claims before it weigh there, which a rise of the cap may fund first; ``over``: the caps that do not hold with it.
    """

    asked: Sums = field(default_factory=dict)
    used: Sums = field(default_factory=dict)
    first: Sums = field(default_factory=dict)
    over: set[int] = field(default_factory=set)

    def most(self, cap: int) -> int:
        """What may count at a cap of GPUs up to the claim, whoever before it is funded."""
        return self.used[cap] + self.first[cap] + self.asked[cap]


def beyond(book: CapBook, spent: Spent, parts: Sequence[Part]) -> dict[Place, Beyond]:
    """What keeps each claim from its payer that the pass over ``parts`` leaves unfunded, be it in part."""
    found: dict[Place, Beyond] = {}
    unfunded: Sums = {}

    def missed(part: Part, used: Sequence[int], seconds: Sums) -> None:
        mine = found.setdefault(part.place, Beyond())
        for cap, weight in part.touched.items():
            mine.first.setdefault(cap, unfunded.get(cap, 0))
            mine.used[cap] = used[cap]
            mine.asked[cap] = mine.asked.get(cap, 0) + weight
            unfunded[cap] = unfunded.get(cap, 0) + weight
        mine.over |= {cap for cap, asked in mine.asked.items() if _is_over(book, used[cap] + asked, cap)}
        mine.over |= {cap for cap, charge in part.second.items() if _is_spent(book, spent, seconds, cap, charge)}

    honour(book, spent, parts, missed)
    return found


def parts_of(book: CapBook, claims: list[Claim], sites: dict[str, int]) -> list[Part]:
    """The parts of all claims whose envelope pays now, in the order of the pass."""
    money = book.money
    paying = [(_place(money, claim), claim) for claim in claims if money.envelopes[claim.envelope].pays_at(money.at)]
    found = []
    for place, claim in sorted(paying, key=lambda p: p[0]):
        for i, leases in enumerate(_together(claim)):
            touched, second = _weigh(book, claim, leases, sites)
            found.append(Part(place, i > 0, touched, second, leases))
    return found


def _place(money: Money, claim: Claim) -> Place:
    place, first = Place(FRESH_LOAN, claim.admitted, claim.run, claim.envelope), claim.leases[0]
    if on_loan(money, first):
        return place if _is_young(money, place) else place._replace(standing=OLD_LOAN)
    owner = money.envelopes[claim.envelope].owner
    return place._replace(standing=money.family.standing(first.run_owner, owner))


def _together(claim: Claim) -> list[list[LeaseRow]]:
    if not claim.malleable:
        return [claim.leases]
    groups: dict[int, list[LeaseRow]] = {}
    for lease in claim.leases:
        groups.setdefault(lease.group, []).append(lease)
    return [groups[g] for g in sorted(groups)]


def _weigh(book: CapBook, claim: Claim, leases: list[LeaseRow], sites: dict[str, int]) -> tuple[Sums, Sums]:
    """Each lease weighs as it is charged: for the owner that it names, on loan if it is one itself."""
    money, lanes = book.money, dict[Lane, int]()
    for lease in leases:
        lane = lane_of(money, lease, sites, claim.limit)
        lanes[lane] = lanes.get(lane, 0) + lease.milli(money.policy)
    return weigh(book, lanes.items())


def weigh(book: CapBook, lanes: Iterable[tuple[Lane, int]]) -> tuple[Sums, Sums]:
    """Weigh milli-GPUs on lanes together per cap, and what their next second is charged."""
    touched: Sums = {}
    second: Sums = {}
    for lane, milli in lanes:
        for cap, weight in book.touches(lane):
            touched[cap] = touched.get(cap, 0) + weight * milli
        for cap, charge in second_of(book, lane, milli, book.money.rate_milli(lane.envelope), book.money.at):
            second[cap] = second.get(cap, 0) + charge
    return touched, second


def _fits(book: CapBook, spent: Spent, used: list[int], seconds: Sums, part: Part) -> bool:
    """Running work is held to what is used now; of hours and credits the next second must be left (spec §3.6)."""
    if any(_is_over(book, used[cap] + weight, cap) for cap, weight in part.touched.items()):
        return False
    return not any(_is_spent(book, spent, seconds, cap, charge) for cap, charge in part.second.items())


def _is_over(book: CapBook, weight: int, cap: int) -> bool:
    return weight > book.caps[cap].limit and not book.caps[cap].ahead


def _is_spent(book: CapBook, spent: Spent, seconds: Sums, cap: int, charge: int) -> bool:
    return spent.cap.get(cap, 0) + seconds.get(cap, 0) + charge > book.caps[cap].limit
