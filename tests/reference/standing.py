"""What running work and past charges take of the caps, and who comes before whom: spec §3.5 Class, §3.6 The ledger.

A *part* is what is funded together: a fixed claim, or one group of a malleable one.
"""

from dataclasses import dataclass

from tests.reference.facts import Key, Lease, World
from tests.reference.rules import SPONSOR, Cap, Payment, milli, rank, rate_of

FRESH_LOAN, OLD_LOAN = -1, 5


@dataclass(frozen=True)
class Part:
    """``level``: its place among the nearnesses; ``takes``: per cap; ``follows``: the group before it is of its claim.

    ``admitted``: when its oldest lease began; ``payer``: its envelope; ``can``: that pays now, and no cap on hours or
    credits that it touches is used up.
    """

    level: int
    admitted: int
    payer: Key
    milli: int
    takes: list[int]
    follows: bool
    can: bool

    def comes_after(self, level: int) -> bool:
        """Spec §3.5: after nearer starts, a loan that starts being within its ``maxDuration``."""
        return level < self.level or level == OLD_LOAN

    def is_firm(self, changed: int) -> bool:
        """Spec §3.8: loans within ``maxDuration`` cannot be recalled, nor what was admitted since the world changed,
        nor the owner's own, for nobody stands nearer.
        """
        return self.level <= 0 or self.admitted >= changed


def level_of(rank_of_payer: int) -> int:
    """Spec §3.5: where a claim stands, by how near its payer is: owner, its children, siblings, parents, the rest."""
    return OLD_LOAN if rank_of_payer == SPONSOR else min(rank_of_payer, 4)


def parts_of(world: World, book: list[Cap], spent: list[int]) -> list[Part]:
    """All running claims in the order of the pass."""
    found = []
    for claim in sorted(_claims(world), key=lambda each: _order(world, each)):
        for number, part in enumerate(_parts(world, claim)):
            paid = [(_payment(world, lease), lease.gpus) for lease in part]
            takes = [sum(gpus * cap.weigh(each) for each, gpus in paid) for cap in book]
            used_up = any(
                take and cap.ahead and spent[i] >= cap.limit
                for i, (cap, take) in enumerate(zip(book, takes, strict=True))
            )
            open_ = world.envelopes[part[0].payer or ("", "")].pays_at(world.at)
            payer = part[0].payer or ("", "")
            weight = sum(lease.gpus * milli(world, active=lease.active) for lease in part)
            found.append(Part(*_order(world, claim)[:2], payer, weight, takes, number > 0, open_ and not used_up))
    return found


def spent_of(world: World, book: list[Cap]) -> list[int]:
    """Per cap, what has been charged."""
    return [sum(_charged(world, cap, lease) for lease in world.leases) for cap in book]


New = tuple[int, list[int]]
"""(level, what it takes per cap) of a start."""


def honoured(parts: list[Part], book: list[Cap], spent: list[int], new: list[New]) -> list[bool]:
    """Spec §3.5: one pass over all claims; one is funded iff every cap it touches still holds with it.

    Before it come the claims before it in the pass, and ``new`` ones that do. Running work is held to the
    caps on GPUs (§3.4); what is left of hours and credits is looked at in ``Part.can``.
    """
    used = list(spent)
    found: list[bool] = []
    for part in parts:
        near = [takes for level, takes in new if part.comes_after(level)]
        fits = all(
            cap.ahead or not take or used[i] + sum(takes[i] for takes in near) + take <= cap.limit
            for i, (cap, take) in enumerate(zip(book, part.takes, strict=True))
        )
        found.append(part.can and fits and (not part.follows or found[-1]))
        if found[-1]:
            used = [mine + extra for mine, extra in zip(used, part.takes, strict=True)]
    return found


def room_of(parts: list[Part], funded: list[bool], number: int, cap: Cap, spent: int, changed: int) -> list[int]:
    """Spec §3.8: by level K, what starts of which the farthest stands there may take together at a cap.

    ``funded``: by the pass without the starts.
    """
    mine = [part for part, paid in zip(parts, funded, strict=True) if paid and part.takes[number]]
    if not cap.recalls:
        return [cap.limit - spent - sum(part.takes[number] for part in mine)] * (OLD_LOAN + 1)
    firm = max((place for place, part in enumerate(mine) if part.is_firm(changed)), default=-1)
    return [
        cap.limit
        - spent
        - sum(part.takes[number] for place, part in enumerate(mine) if place <= firm or part.level <= farthest)
        for farthest in range(OLD_LOAN + 1)
    ]


def _charged(world: World, cap: Cap, lease: Lease) -> int:
    """Spec §3.6: Σ over funded segments of weight × seconds, at or after the present ``start``."""
    if lease.payer is None:
        return 0
    payment = _payment(world, lease)
    opened = cap.since(payment)
    total = 0
    for segment in lease.segments:
        until = segment["to"] if segment["to"] is not None else world.at if lease.until is None else lease.until
        seconds = max(0, until - max(opened, segment["from"]))
        rate = segment["rate_milli"] if segment["rate_milli"] is not None else rate_of(world, payment.envelope)
        if segment["class"] != "unfunded":
            total += lease.gpus * seconds * cap.charge(payment, rate)
    return total


def _payment(world: World, lease: Lease) -> Payment:
    """What one GPU of a lease is to the caps; ``left`` counts from now to the end of the run's time limit."""
    limit = world.runs[lease.run].limit
    start = min((each.start for each in world.leases if each.run == lease.run and each.until is None), default=world.at)
    left = None if limit is None else max(0, start + limit - world.at)
    payer, node = world.envelopes[lease.payer or ("", "")], world.nodes.get(lease.node)
    return Payment(lease.run_owner, _is_loan(world, lease), payer, node, lease.active, left)


def _claims(world: World) -> list[list[Lease]]:
    """Spec §3.5: a claim is a run's GPUs at one envelope."""
    found: dict[tuple[Key, Key], list[Lease]] = {}
    for lease in world.leases:
        if lease.until is None and lease.payer is not None:
            found.setdefault((lease.run, lease.payer), []).append(lease)
    return list(found.values())


def _order(world: World, claim: list[Lease]) -> tuple[int, int, Key, Key]:
    """Loans within ``maxDuration``; then by nearness of the claimant to the payer's owner (owner, its children,
    siblings, parents, the rest); older loans last; within these by admission, run, envelope.
    """
    payer = world.envelopes[claim[0].payer or ("", "")]
    admitted = min(lease.start for lease in claim)
    near = rank(world, claim[0].run_owner, payer.owner)
    if near is None or _is_loan(world, claim[0]):
        place = FRESH_LOAN if world.at - admitted < payer.row["lending_duration"] else OLD_LOAN
    else:
        place = level_of(near)
    return place, admitted, claim[0].run, payer.key


def _is_loan(world: World, lease: Lease) -> bool:
    """A stranger pays; or a relative whose `sharing: none` opts out, and that lent from the start (spec §3.1, §3.5)."""
    payer = world.envelopes[lease.payer or ("", "")]
    near = rank(world, lease.run_owner, payer.owner)
    first = next((each["class"] for each in lease.segments if each["class"] != "unfunded"), "unfunded")
    return near is None or (near != 0 and payer.row["sharing"] == "none" and first == "borrowed")


def _parts(world: World, claim: list[Lease]) -> list[list[Lease]]:
    """Fixed-width claims are all-or-nothing; malleable ones fill group by group from 0."""
    if world.runs[claim[0].run].row["min_total"] is None:
        return [claim]
    return [[each for each in claim if each.group == group] for group in sorted({each.group for each in claim})]
