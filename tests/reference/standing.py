"""What running work and past charges leave of the caps: spec §3.5 Class and §3.6 The ledger."""

from tests.reference.facts import Key, Lease, World
from tests.reference.rules import Cap, Payment, caps, rank, rate_of


def left_of_caps(world: World) -> list[tuple[Cap, int]]:
    """Every cap with what new payments may still take of it, at least 0.

    Spec §3.5: one pass over all claims; one is funded iff every cap it touches still holds with it. Running work is
    held to the caps on GPUs and, once they are gone, to those on hours and credits (§3.4).
    """
    book = caps(world)
    spent = [sum(_charged(world, cap, lease) for lease in world.leases) for cap in book]
    used = list(spent)
    for claim in sorted(_claims(world), key=lambda each: _order(world, each)):
        for part in _parts(world, claim):
            paid = [(_payment(world, lease), lease.gpus) for lease in part]
            more = [sum(gpus * cap.weigh(each) for each, gpus in paid) for cap in book]
            touched = [i for i, amount in enumerate(more) if amount]
            fits = all(
                spent[i] < book[i].limit if book[i].ahead else used[i] + more[i] <= book[i].limit for i in touched
            )
            if not fits or not world.envelopes[part[0].payer or ("", "")].pays_at(world.at):
                break
            used = [mine + extra for mine, extra in zip(used, more, strict=True)]
    return [(cap, max(0, cap.limit - taken)) for cap, taken in zip(book, used, strict=True)]


def _charged(world: World, cap: Cap, lease: Lease) -> int:
    """Spec §3.6: Σ over funded segments of weight × seconds, at or after the envelope's present ``start``."""
    if lease.payer is None:
        return 0
    payment = _payment(world, lease)
    opened = payment.envelope.row["start"] or 0
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
    return Payment(
        lease.run_owner, world.envelopes[lease.payer or ("", "")], world.nodes.get(lease.node), lease.active, left
    )


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
    if rank(world, claim[0].run_owner, payer.owner) is None:
        place = -1 if world.at - admitted < payer.row["lending_duration"] else 5
    else:
        place = {0: 0, 3: 1, 2: 2, 1: 3}.get(rank(world, payer.owner, claim[0].run_owner) or 0, 4)
    return place, admitted, claim[0].run, payer.key


def _parts(world: World, claim: list[Lease]) -> list[list[Lease]]:
    """Fixed-width claims are all-or-nothing; malleable ones fill group by group from 0."""
    if world.runs[claim[0].run].row["min_total"] is None:
        return [claim]
    return [[each for each in claim if each.group == group] for group in sorted({each.group for each in claim})]
