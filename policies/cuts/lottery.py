"""The public lottery: a hash chain of secrets, a seed per promise, words, and fair picks among owners (spec §6).

Pure arithmetic on SHA-256; where the pools come from is no matter of this file. ``docs/verify-lottery.md`` specifies
the same for readers in any language.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple

from jobtree.api.values.scalars import Time
from jobtree.world.memory.lottery import LENGTH

_WORDS = 2**256
_STRIDE = 1024
"""Steps of a chain between two secrets that are kept."""


class Token(NamedTuple):
    """A group of a run that may be drawn. Tokens sort by namespace, run, and group as a number."""

    namespace: str
    run: str
    group: int

    def __str__(self) -> str:
        return f"{self.namespace}/{self.run}#{self.group}"


Pool = Mapping[str, tuple[Token, ...]]
"""Who may be drawn: tokens by owner. Their order here is no matter."""


def secret_at(origin: str, position: int, length: int = LENGTH) -> str:
    """Compute w_position from the chain's ``origin`` w_length by w_(i−1) = SHA-256(w_i); position 0 is the anchor.

    Both are hex in lower case, hashed as 32 raw bytes.

    Raises ValueError where the chain has no such position.
    """
    if not 0 <= position <= length:
        raise ValueError(f"the chain has positions 0 to {length}, not {position}")
    marks = _marks(origin, length // _STRIDE) if length - position > _STRIDE else (bytes.fromhex(origin),)
    passed = min((length - position) // _STRIDE, len(marks) - 1)
    secret = marks[passed]
    for _ in range(length - position - passed * _STRIDE):
        secret = sha256(secret).digest()
    return secret.hex()


@lru_cache(maxsize=4)
def _marks(origin: str, count: int) -> tuple[bytes, ...]:
    """Every so many of a chain's secrets, from its origin on: the next one of a process costs a few hashes."""
    secret = bytes.fromhex(origin)
    found = [secret]
    for _ in range(count):
        for _ in range(_STRIDE):
            secret = sha256(secret).digest()
        found.append(secret)
    return tuple(found)


def seed_of(secret: str, uid: str, earliest_start: int) -> str:
    """Compute the seed of one promise's draw: SHA-256(hex secret, reservation uid, first promised start), hex.

    The three texts are joined by one line feed each; the start is a Unix second, hashed as RFC 3339 in UTC.
    """
    return sha256("\n".join((secret, uid, str(Time(earliest_start)))).encode()).hexdigest()


@dataclass
class Words:
    """The words of a seed: word i is SHA-256(seed bytes ‖ i as 8 bytes, big-endian) as a 256-bit number."""

    seed: str
    index: int = field(default=0)

    def below(self, n: int) -> int:
        """Take the next word that is fair among ``n`` ≥ 1, modulo n: words ≥ ⌊2²⁵⁶/n⌋·n are skipped."""
        fair = _WORDS // n * n
        while True:
            word = int.from_bytes(sha256(bytes.fromhex(self.seed) + self.index.to_bytes(8, "big")).digest(), "big")
            self.index += 1
            if word < fair:
                return word % n


def pick(pool: Pool, words: Words) -> Token:
    """Draw an owner (sorted by bytes), then one of its tokens. Takes two words, among one as well.

    Owners without tokens do not count. Raises ValueError where no token is left.
    """
    owners = sorted((owner for owner, tokens in pool.items() if tokens), key=str.encode)
    if not owners:
        raise ValueError("nobody is left to be drawn")
    owner = owners[words.below(len(owners))]
    tokens = sorted(pool[owner])
    return tokens[words.below(len(tokens))]


class Pick(NamedTuple):
    """One pick, and the pool that it was made from."""

    pool: Pool
    token: Token


def draw(seed: str, pool_after: Callable[[tuple[Token, ...]], Pool]) -> tuple[Pick, ...]:
    """Draw until ``pool_after`` the tokens drawn so far has nobody: then they free what is needed."""
    words = Words(seed)
    picks: tuple[Pick, ...] = ()
    while any((pool := pool_after(tuple(each.token for each in picks))).values()):
        picks = (*picks, Pick(pool, pick(pool, words)))
    return picks


def ordered(pool: Pool) -> tuple[tuple[str, tuple[Token, ...]], ...]:
    """Arrange a pool as it is published: owners sorted by bytes, each one's tokens by namespace, run, group."""
    return tuple((owner, tuple(sorted(pool[owner]))) for owner in sorted(pool, key=str.encode) if pool[owner])


def pool_of(tokens: Iterable[tuple[str, Token]]) -> Pool:
    """Build a pool from pairs of owner and token."""
    pool: dict[str, list[Token]] = {}
    for owner, token in tokens:
        pool.setdefault(owner, []).append(token)
    return {owner: tuple(mine) for owner, mine in pool.items()}
