"""Balances: what leases that were pruned had been charged, to the second (spec §3.6).

Before closed leases go, what they were charged is added to *accounts*: for each payer, and whatever else decides which
caps and bills a charge belongs to, the milli-GPUs that were paid for over time, as spans of constant width. So a later
cycle can still tell how much fell at or after any ``start``, whoever edits it. Accounts lie in a ConfigMap, with the
names of the leases that were counted last: one of those that is still there is not counted again.

Once that would not fit an object, its older spans are merged, by days, months, then years: what was charged in one of
them counts in its last second. A later ``start`` within it has all of it count, so that nothing is ever refunded; the
starts of windows as they are stay exact. What does not fit even so begins another *part*, a ConfigMap like the first:
what counts is the sum of all. A cycle writes the last part alone, leases and their names in one step; those before it
never change again.
"""

import base64
import re
import zlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import msgspec

from jobtree.api import Refusal
from jobtree.api.kinds.lease import FundingClass, Role
from jobtree.api.values.scalars import DAY
from jobtree.world.memory.seen import NAMESPACE

RECORD: Final = "jobtree-balances"
"""Name of the ConfigMap, in the planner's namespace; of further parts with ``-1``, ``-2`` and so on."""
PLAIN: Final = 2**19
"""Most bytes of accounts that are kept as text; more are compressed."""
MOST: Final = 5 * 2**17
"""Most bytes of accounts as they are kept: an object holds a mebibyte at most, with the names of counted leases."""

_NAME: Final = re.compile(rf"{RECORD}(?:-([1-9][0-9]*))?")
_ACCOUNTS, _PACKED, _COUNTED = "accounts", "accounts.zlib", "counted"

Span = tuple[int, int, int]
"""(from, to, milli-GPUs): what was paid for in every second of [from, to), Unix seconds."""
LeaseName = tuple[str, str]
"""(namespace, name)."""


class Title(NamedTuple):
    """Title of a charge: what decides which caps and bills it belongs to.

    ``owner``: the payer's; ``lent``: it was called borrowed from its start; ``place``: see `place_of`; ``rate_milli``:
    millicredits per GPU-hour.
    """

    budget: str
    envelope: str
    owner: str
    run_owner: str
    flavor: str
    funding_class: FundingClass
    role: Role
    lent: bool
    place: str
    rate_milli: int


class Account(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, rename="camel"):
    """Charges of one `Title`: ``spans`` in order, each as wide as long, none empty, none touching its equal."""

    budget: str
    envelope: str
    owner: str
    run_owner: str
    flavor: str
    funding_class: FundingClass
    role: Role
    spans: tuple[Span, ...]
    lent: bool = False
    place: str = ""
    rate_milli: int = 0

    @property
    def title(self) -> Title:
        """Whose charges they are."""
        return Title(*(getattr(self, name) for name in Title._fields))


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Of one part: accounts by title, and the leases that were counted last, with their ends."""

    accounts: tuple[Account, ...] = ()
    counted: Mapping[LeaseName, int] = {}


def place_of(labels: Mapping[str, str], asked: Iterable[str]) -> str:
    """A node as selectors see it: its labels of the keys that are ``asked`` for (JSON, null where it lacks one)."""
    return _json({key: labels.get(key) for key in asked}).decode()


def accounts_of(charges: Iterable[tuple[Title, Span]]) -> tuple[Account, ...]:
    """Charges as accounts, in the order of their titles."""
    found: dict[Title, list[Span]] = defaultdict(list)
    for title, span in charges:
        found[title].append(span)
    summed = ((title, _summed(found[title])) for title in sorted(found))
    return tuple(Account(**title._asdict(), spans=spans) for title, spans in summed if spans)


def merged(before: Iterable[Account], more: Iterable[Account], starts: Iterable[int]) -> tuple[Account, ...]:
    """Both together, blurred until they fit into an object or are as coarse as they get.

    ``starts``: of windows, around which nothing is blurred.
    """
    accounts = accounts_of((each.title, span) for each in (*before, *more) for span in each.spans)
    cuts = sorted(set(starts))
    for ends, days in _LADDER:
        if _fits(accounts):
            break
        newest = max(span[1] for each in accounts for span in each.spans)
        accounts = accounts_of(
            (each.title, span)
            for each in accounts
            for span in _blurred(each.spans, ends, newest // DAY * DAY - days * DAY, cuts)
        )
    return accounts


def grown(parts: Mapping[int, Part], more: Sequence[Account], starts: Sequence[int]) -> tuple[int, tuple[Account, ...]]:
    """The number of the part that takes ``more``, and its accounts with that: the last one, or else a new one."""
    last = max(parts, default=0)
    before = parts[last].accounts if last in parts else ()
    together = merged(before, more, starts)
    return (last, together) if not before or _fits(together) else (last + 1, merged((), more, starts))


def whole(parts: Sequence[Part]) -> tuple[Account, ...]:
    """The accounts of all parts together."""
    first, *others = parts or [Part()]
    if not others:  # as they were written: in order
        return first.accounts
    return accounts_of((each.title, span) for part in parts for each in part.accounts for span in each.spans)


def name_of(number: int) -> str:
    """The ConfigMap of a part."""
    return f"{RECORD}-{number}" if number else RECORD


def number_of(namespace: str, name: str) -> int | None:
    """Of the part that a ConfigMap of this name is, None where it is none."""
    found = _NAME.fullmatch(name) if namespace == NAMESPACE else None
    return int(found[1] or 0) if found else None


def gaps(numbers: Iterable[int]) -> Iterator[tuple[str, str]]:
    """Parts that are not there though one of these ``numbers`` comes after them: name, and what that means.

    Of several that lack one after the other the first.
    """
    before = -1
    for number in sorted(set(numbers)):
        if number > before + 1:
            words = "what it says was charged counts nowhere; put it back"
            yield name_of(before + 1), f"it is gone and {name_of(number)} is there: {words}"
        before = number


def record(part: Part) -> dict[str, str]:
    """The ConfigMap's data."""
    names = {f"{namespace}/{name}": ended for (namespace, name), ended in part.counted.items()}
    return {**_kept(part.accounts), _COUNTED: _json(names).decode()}


def of(data: Mapping[str, str]) -> Part:
    """The part of such data. Raises Refusal where they cannot be read."""
    try:
        packed = data.get(_PACKED)
        text = data[_ACCOUNTS].encode() if packed is None else zlib.decompress(base64.b64decode(packed))
        accounts = msgspec.json.decode(text, type=tuple[Account, ...])
        names = msgspec.json.decode(data.get(_COUNTED, "{}"), type=dict[str, int])
    except (KeyError, ValueError, msgspec.DecodeError, zlib.error):  # ValueError: not base64, or not UTF-8
        raise Refusal("its accounts cannot be read, so no closed lease is pruned; put back what it was") from None
    paths = {path.partition("/"): ended for path, ended in names.items()}
    counted = {(namespace, name): ended for (namespace, _, name), ended in paths.items()}
    return Part(accounts=accounts, counted=counted)


def _summed(spans: Iterable[Span]) -> tuple[Span, ...]:
    """The sum of spans, which may lie over each other, as spans that do not."""
    turns: dict[int, int] = defaultdict(int)
    for since, until, milli in spans:
        turns[since] += milli
        turns[until] -= milli
    found: list[Span] = []
    width, last = 0, 0
    for at in sorted(at for at, turn in turns.items() if turn):
        if width:
            found.append((last, at, width))
        width, last = width + turns[at], at
    return tuple(found)


def _blurred(spans: Sequence[Span], ends: Callable[[int], int], before: int, cuts: Sequence[int]) -> Iterable[Span]:
    """Spans that ended by ``before``, each stretch up to where one ``ends`` or a cut as its last second alone."""
    for since, until, milli in spans:
        if until > before:
            yield since, until, milli
            continue
        at = since
        while at < until:
            end = min([ends(at), before, *cuts[bisect_right(cuts, at) :][:1]])
            yield end - 1, end, milli * (min(until, end) - at)
            at = end


def _end_of_day(at: int) -> int:
    return at // DAY * DAY + DAY


def _end_of_month(at: int) -> int:
    moment = datetime.fromtimestamp(at, UTC)
    year, month = divmod(moment.year * 12 + moment.month, 12)
    return int(datetime(year, month + 1, 1, tzinfo=UTC).timestamp())


def _end_of_year(at: int) -> int:
    return int(datetime(datetime.fromtimestamp(at, UTC).year + 1, 1, 1, tzinfo=UTC).timestamp())


_LADDER: Final[tuple[tuple[Callable[[int], int], int], ...]] = (
    (_end_of_day, 90), (_end_of_day, 7), (_end_of_month, 90), (_end_of_month, 7), (_end_of_year, 7)
)  # fmt: skip
"""What is merged, and from how many days before the last charge on: as few of these as make the record fit."""


def _fits(accounts: Sequence[Account]) -> bool:
    return sum(map(len, _kept(accounts).values())) <= MOST


def _kept(accounts: Sequence[Account]) -> dict[str, str]:
    text = _json(accounts)
    if len(text) <= PLAIN:
        return {_ACCOUNTS: text.decode()}
    return {_PACKED: base64.b64encode(zlib.compress(text, 9)).decode()}


def _json(value: Any) -> bytes:
    return msgspec.json.encode(value, order="sorted")
