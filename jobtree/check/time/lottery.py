"""The draw again, from what a Plan publishes alone: chain, seeds, words, picks (spec §6). Shares no code with it."""

import hashlib
import re
from collections.abc import Container, Iterator
from typing import Final, NamedTuple

from jobtree.api.kinds.plan import Draw, Lottery
from jobtree.api.kinds.reservation import Reservation
from jobtree.api.values.scalars import Time

_SECRET: Final = re.compile(r"[0-9a-f]{64}")


class Step(NamedTuple):
    """One thing recomputed: what it is, what was published, what comes out; ``compared``: False says why it was not."""

    what: str
    published: str
    computed: str
    compared: bool = True

    @property
    def holds(self) -> bool:
        """Whether both are the same."""
        return self.published == self.computed


def misplaced(lottery: Lottery, used: int) -> Step | None:
    """The fault of a position that the chain has not come to: ``used`` is that of its secret used last."""
    if 1 <= lottery.position <= used:
        return None
    least = "at least 1" if lottery.position < 1 else f"at most {used}, as the chain has come to"
    return Step("position of the secret", str(lottery.position), least)


def next_after(before: Lottery, lottery: Lottery, anchors: Container[str]) -> Iterator[Step]:
    """Is its secret the one after the last that was used ``before``, or the first of another chain?

    ``anchors``: of the chains there were, hex; where that before is of none, its own steps say so, and not these.
    """
    if _SECRET.fullmatch(before.secret) and (anchor := hashed_back(before.secret, before.position)) in anchors:
        is_same = hashed_back(lottery.secret, lottery.position) == anchor
        yield Step("position of the secret", str(lottery.position), str(before.position + 1 if is_same else 1))


def hashed_back(secret: str, times: int) -> str:
    """The secret so many places before this one in its chain; both hex."""
    for _ in range(times):
        secret = hashlib.sha256(bytes.fromhex(secret)).hexdigest()
    return secret


def promised(draw: Draw, reservation: Reservation | None) -> Iterator[Step]:
    """Were the seed's texts those of the Reservation itself, where it is still there?"""
    if reservation is None:
        yield Step(f"Reservation {draw.reservation} is not there any more: not compared", "", "", compared=False)
        return
    yield Step(f"UID of {draw.reservation}", draw.uid, reservation.metadata.uid)
    first = reservation.spec.earliest_start
    yield Step(f"start of {draw.reservation} as first promised", str(Time(draw.earliest_start)), str(Time(first)))


def recompute(lottery: Lottery, anchor: str, anchored: int = 0) -> Iterator[Step]:
    """Recompute a Plan's lottery, step by step.

    ``anchor``: w_``anchored``, hex, known from before: the chain's own at 0, or the secret of an earlier Plan.
    """
    secret = lottery.secret
    if not _SECRET.fullmatch(secret):
        yield Step(f"secret {lottery.position}", secret, "no 32 bytes in hex")
        return
    back = hashed_back(secret, lottery.position - anchored)
    yield Step(f"secret {lottery.position}, hashed back to {anchored}", anchor, back)
    for each in lottery.draws:
        yield from _draw(each, lottery.secret)


def _draw(draw: Draw, secret: str) -> Iterator[Step]:
    seed = hashlib.sha256(f"{secret}\n{draw.uid}\n{Time(draw.earliest_start)}".encode()).digest()
    yield Step(f"seed for {draw.reservation}", draw.seed, seed.hex())
    counter = 0
    for number, published in enumerate(draw.picks):
        pool = sorted(draw.pools[number] if number < len(draw.pools) else (), key=lambda each: each.owner.encode())
        owner, counter = _word(seed, counter, len(pool))
        tokens = sorted(pool[owner].tokens, key=_token) if pool else []
        chosen, counter = _word(seed, counter, len(tokens))
        yield Step(f"pick {number} of {draw.reservation}", published, tokens[chosen] if tokens else "nobody")


def _token(text: str) -> tuple[str, str, int]:
    """Namespace, run and group of a token: the last as a number."""
    run, _, group = text.rpartition("#")
    namespace, _, name = run.partition("/")
    return namespace, name, int(group) if group.isdecimal() else -1


def _word(seed: bytes, counter: int, among: int) -> tuple[int, int]:
    """A fair number below ``among`` and the next counter; 0 among nobody."""
    top = 1 << 256
    while among:
        word = int(hashlib.sha256(seed + counter.to_bytes(8, "big")).hexdigest(), 16)
        counter += 1
        if word < top - top % among:
            return word % among, counter
    return 0, counter
