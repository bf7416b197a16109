"""Envelopes as pools: their own payments, or with ``scope: subtree`` the whole subtree's (spec §1 Budget).

own:      Σ payments from e                                                            ≤ caps of e
subtree:  Σ payments from e + Σ payments from envelopes of descendants, on nodes that
e's flavor and selector match, while e's window is open                      ≤ caps of e
"""

from policies.caps import Lane, Pool
from policies.money import Money

RULE_OWN = "envelope"
RULE_SUBTREE = "subtree"


def pools(money: Money) -> list[Pool]:
    """One pool per envelope, in envelope order."""
    return [_pool(money, i) for i in range(len(money.envelopes))]


def _pool(money: Money, index: int) -> Pool:
    envelope = money.envelopes[index]
    members = [index]
    if envelope.subtree and envelope.open_at(money.at):
        members += [
            i
            for i, other in enumerate(money.envelopes)
            if other.flavor == envelope.flavor and money.family.descends(other.owner, envelope.owner)
        ]
    sites = money.sites[index]

    def contains(lane: Lane) -> bool:
        return lane.envelope == index or lane.site in sites

    return Pool(
        rule=RULE_SUBTREE if envelope.subtree else RULE_OWN,
        subject=envelope.label,
        envelopes=tuple(sorted(members)),
        contains=contains,
        concurrency=envelope.concurrency,
        max_gpu_milliseconds=envelope.max_gpu_milliseconds,
        max_millicredits=envelope.max_millicredits,
        since=envelope.start,
        end=envelope.end,
    )
