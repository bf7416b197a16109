"""Running work that nobody pays for (spec §3.5): who stopped, since when, why, and what would have it paid again.

All that tells of it, the status, Events and commands, has these words.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from jobtree.api.values.counted import counted, gpus_of
from jobtree.api.values.scalars import Time
from jobtree.world.naming.named import GONE_PAYER
from jobtree.world.naming.payments import Part, stopped
from planner.state.state import State
from policies.caps.cap import Cap, amount
from policies.funding.classes import Beyond, beyond, parts_of
from policies.funding.usage import Classes
from policies.inputs.claims import UNFUNDED, LeaseRow, RunKey, open_claims

MEANS: Final = "This work runs on, charged to nobody and first to be cut"


def unpaid(state: State, held: Mapping[RunKey, list[LeaseRow]], classes: Classes) -> dict[RunKey, str]:
    """Sentences on each run with unfunded GPUs, once a plan is carried out.

    ``held``: open leases by run then, with their ``classes``.
    """
    lost = {key: [lease for lease in mine if classes[lease.key] == UNFUNDED] for key, mine in held.items()}
    lost = {key: mine for key, mine in lost.items() if mine}
    words = _Words(state, held)
    return {key: words.of(key, mine) for key, mine in lost.items()}


@dataclass
class _Words:
    state: State
    held: Mapping[RunKey, list[LeaseRow]]

    def of(self, key: RunKey, lost: Iterable[LeaseRow]) -> str:
        """All on one run's unfunded leases, payer by payer."""
        of: dict[tuple[str, str], list[LeaseRow]] = {}
        for lease in lost:
            of.setdefault((lease.budget, lease.envelope_name), []).append(lease)
        said, again = [], []
        for (budget, _), mine in sorted(of.items()):
            if not budget:
                said.append(f"{_gpus(mine)} started unfunded.")
                continue
            why, until = self._why(key, mine[0])
            said.append(f"{self._stopped(mine)}: {why}.")
            again.append(until)
        return " ".join([*said, "; ".join([MEANS, *again]) + "."])

    def _stopped(self, leases: Iterable[LeaseRow]) -> str:
        times: dict[int, list[LeaseRow]] = {}
        for lease in leases:
            times.setdefault(self._since(lease), []).append(lease)
        return ", ".join(
            stopped(_label(mine[0]), since, [Part(_label(each), each.gpus, each.active) for each in mine])
            for since, mine in sorted(times.items())
        )

    def _since(self, lease: LeaseRow) -> int:
        """The second from which on nobody pays for an unfunded lease."""
        if not lease.segments:
            return lease.start
        return lease.segments[-1][1] if lease.funding_class == UNFUNDED else self.state.at

    def _why(self, key: RunKey, lease: LeaseRow) -> tuple[str, str]:
        """Why the payer that a lease names does not pay, and when it does again: two clauses."""
        money, payer = self.state.money, _label(lease)
        if lease.budget in money.quarantined:
            return f"Budget {lease.budget} cannot be read", f"{payer} is asked again once it can"
        if lease.envelope == GONE_PAYER:
            whose = f"Budget {lease.budget} of {lease.owner} with an envelope {lease.envelope_name} for {lease.flavor}"
            return f"there is no {whose} any more", f"{payer} pays again once there is one"
        envelope = money.envelopes[lease.envelope]
        if not envelope.pays_at(money.at):
            if envelope.end is not None and envelope.end <= money.at:
                field = f"spec.envelopes[{envelope.name}].end of Budget {envelope.budget}"
                return f"its window ended at {Time(envelope.end)}", f"{payer} pays again once {field} is later"
            start = Time(envelope.start or money.at)
            return f"its window opens at {start}", f"{payer} pays again from {start} on"
        claim = self._claims.get((key, lease.envelope))
        if claim is None:  # what this plan turns makes room for it
            return "there is room for it again", f"{payer} pays again from the next cycle on"
        return self._beyond(payer, claim)

    def _beyond(self, payer: str, claim: Beyond) -> tuple[str, str]:
        caps = self.state.book.caps
        why = " and ".join(_lack(caps[number], claim, number) for number in sorted(claim.over))
        short = {number for number in claim.asked if not caps[number].ahead and claim.most(number) > caps[number].limit}
        rises = [_rise(caps[number], claim.most(number)) for number in sorted(short | claim.over)]
        return why, f"{payer} pays again once {' and '.join(rises)}"

    @cached_property
    def _claims(self) -> dict[tuple[RunKey, int], Beyond]:
        """What claims are beyond, by run and envelope: the pass over all that runs then."""
        state = self.state
        malleable = frozenset(key for key in self.held if (run := state.runs.get(key)) is not None and run.malleable)
        leases = [lease for mine in self.held.values() for lease in mine]
        parts = parts_of(state.book, open_claims(leases, state.money, {}, malleable), state.node_site)
        found = beyond(state.book, state.taken, parts)
        return {(place.run, place.envelope): claim for place, claim in found.items()}


def _label(lease: LeaseRow) -> str:
    return f"{lease.budget}/{lease.envelope_name}"


def _gpus(leases: list[LeaseRow]) -> str:
    active = sum(lease.gpus for lease in leases if lease.active)
    return gpus_of(active, sum(lease.gpus for lease in leases) - active)


def _lack(cap: Cap, claim: Beyond, number: int) -> str:
    """What a cap lacks for a claim. What is spent grows with the clock, and a condition must not."""
    if cap.ahead:
        limit = counted(amount(cap.limit, cap.measure.scale), cap.measure.unit)
        return f"nothing is left of the {limit} of {cap.place}"
    used, first = claim.used[number], claim.first[number]
    short = amount(used + claim.asked[number] - cap.limit, cap.measure.scale)
    return f"{counted(short, cap.measure.unit)} short {cap.words(used, first)}"


def _rise(cap: Cap, most: int) -> str:
    """To which value its field would have to rise: ``most``, in the cap's unit, may count there up to the claim."""
    budget, path = cap.path
    to = "more than what is spent" if cap.ahead else f"{-(-most // cap.measure.scale)} or more"
    return f"{path} of Budget {budget} is {to}"
