"""Envelopes as pools: their own payments, or with ``scope: subtree`` the whole subtree's (spec §1 Budget).

own:      Σ payments from e                                                            ≤ caps of e
subtree:  Σ payments from e + Σ payments from envelopes of descendants, on nodes that
e's flavor and selector match, while e's window is open                      ≤ caps of e

An envelope of a descendant that is deleted, or cannot be read, is one by the owner that its payments name: nothing that
was charged to the subtree is refunded.
"""

from dataclasses import replace
from typing import Final

from policies.caps.cap import MAXIMA, Family, Gone, Lane, Pool
from policies.inputs.money import Money

OWN: Final = Family(
    rule="envelope",
    words="{}",
    table="envelopes",
    part="envelopes",
    limits={**MAXIMA, "concurrency": ("concurrency", "concurrency")},
)
SUBTREE: Final = replace(OWN, rule="subtree", words="the subtree of {}")
GONE: Final = -1
"""The site of a node that is not there any more: it counts as matched, so that caps stay safe."""


def pools(money: Money) -> list[Pool]:
    """One pool per envelope, in envelope order."""
    return [_pool(money, i) for i in range(len(money.envelopes))]


def below(money: Money, index: int) -> list[int]:
    """Envelopes of descendants, of the same flavor: what a subtree's scope bounds beside the envelope itself."""
    envelope = money.envelopes[index]
    return [
        i
        for i, other in enumerate(money.envelopes)
        if other.flavor == envelope.flavor and money.family.descends(other.owner, envelope.owner)
    ]


def _pool(money: Money, index: int) -> Pool:
    envelope = money.envelopes[index]
    members = [index]
    opened = envelope.subtree and envelope.open_at(money.at)
    if opened:
        members += below(money, index)
    sites = money.sites[index] | money.places[index]

    def contains(lane: Lane) -> bool:
        return lane.envelope == index or lane.site in sites or lane.site == GONE

    def above(gone: Gone) -> bool:
        beneath = gone.flavor == envelope.flavor and money.family.descends(gone.owner, envelope.owner)
        return beneath and (gone.site in sites or gone.site == GONE)

    return Pool(
        family=SUBTREE if envelope.subtree else OWN,
        subject=envelope.label,
        envelopes=tuple(sorted(members)),
        contains=contains,
        concurrency=envelope.concurrency,
        max_gpu_milliseconds=envelope.max_gpu_milliseconds,
        max_millicredits=envelope.max_millicredits,
        since=envelope.start,
        end=envelope.end,
        above=above if opened else None,
    )
