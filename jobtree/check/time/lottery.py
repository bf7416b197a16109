"""The draw again, from what a Plan publishes alone: chain, seeds, words, picks (spec §6). Shares no code with it."""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from jobtree.api.kinds.plan import Draw, Lottery
from jobtree.api.values.scalars import Time


class Step(NamedTuple):
    """One thing recomputed: what it is, what was published, what comes out."""

    what: str
    published: str
    computed: str

    @property
    def holds(self) -> bool:
        """Whether both are the same."""
        return self.published == self.computed


def recompute(lottery: Lottery, anchor: str, anchored: int = 0) -> Iterator[Step]:
    """Recompute a Plan's lottery, step by step.

    ``anchor``: w_``anchored``, hex, known from before: the chain's own at 0, or the secret of an earlier Plan.
    """
    secret = lottery.secret
    for _ in range(lottery.position - anchored):
        secret = hashlib.sha256(bytes.fromhex(secret)).hexdigest()
    yield Step(f"secret {lottery.position}, hashed back to {anchored}", anchor, secret)
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
    return namespace, name, int(group)


def _word(seed: bytes, counter: int, among: int) -> tuple[int, int]:
    """A fair number below ``among`` and the next counter; 0 among nobody."""
    top = 1 << 256
    while among:
        word = int(hashlib.sha256(seed + counter.to_bytes(8, "big")).hexdigest(), 16)
        counter += 1
        if word < top - top % among:
            return word % among, counter
    return 0, counter
