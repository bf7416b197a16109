"""Losses among what earlier cycles left (spec §3.6): a record beside which another one should be there."""

from collections.abc import Iterable, Iterator

from jobtree.api import Plan
from jobtree.world.memory import balances, seen


def lost(config_maps: Iterable[tuple[str, str]], plans: Iterable[Plan]) -> Iterator[tuple[str, str]]:
    """The planner's ConfigMaps that something is to be said of: name, sentence.

    ``config_maps``: (namespace, name) of all that are there, be it unreadably.
    """
    there = list(config_maps)
    parts = (balances.number_of(*each) for each in there)
    yield from balances.gaps(number for number in parts if number is not None)
    if (seen.NAMESPACE, seen.RECORD) in there and seen.last_plan(plans) is None:
        words = "the Plan of its cycle is lost: what ran since is charged under the Budgets as they are now"
        yield seen.RECORD, words
