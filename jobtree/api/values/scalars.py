"""The scalars of the API: durations, times, owners and quantities, as integers and strings.

Each is read from its text by `dec_hook` and printed in one canonical form by `enc_hook`; both are
given to every msgspec decoder and encoder of the project. Reading is cached: a state file repeats
the same few thousand texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final, Self

from jobtree.api.values.errors import Unreadable

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MINUTE: Final = 60
HOUR: Final = 3600
DAY: Final = 86400
MIB: Final = 2**20
GIB: Final = 2**30
#: A hundred years: beyond any plan, and far from the end of the calendar.
MAX_DURATION: Final = 36_525 * DAY

#: The most of one quantity, in milli-CPU and in bytes: sums of thousands of them still fit 64 bits.
MAX_CPU: Final = 10**12
MAX_MEMORY: Final = 2**50

DURATION_PATTERN: Final = r"^([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?$"
TIME_PATTERN: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2})?(Z|[+-][0-9]{2}:[0-9]{2})$"
#: The same with seconds, as API servers want a date-time.
STRICT_TIME_PATTERN: Final = TIME_PATTERN.replace("(:[0-9]{2})?", ":[0-9]{2}")
OWNER_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9_.@+-]*(:[A-Za-z0-9_.@+-]+)*$"
QUANTITY_PATTERN: Final = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,2}|[numkMGTPE]|[KMGTPE]i)?$"
MAX_OWNER: Final = 253

DURATION_ALLOWED: Final = "a duration such as 10m, 12h, 1h30m or 2d"
TIME_ALLOWED: Final = "a time such as 2025-11-01T14:05:00Z"
OWNER_ALLOWED: Final = "a colon path such as org:ai:rai:sys of letters, digits and _.@+-, first a letter or digit"
QUANTITY_ALLOWED: Final = "a quantity such as 4, 500m or 2Gi"

_DURATION: Final = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?", re.ASCII)
_TIME: Final = re.compile(TIME_PATTERN, re.ASCII)
_OWNER: Final = re.compile(OWNER_PATTERN, re.ASCII)
_QUANTITY: Final = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:([eE][+-]?[0-9]{1,2})|([A-Za-z]{0,2}))", re.ASCII)
_SUFFIX: Final = {
    "n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000), "": Fraction(1),
    "k": Fraction(10**3), "M": Fraction(10**6), "G": Fraction(10**9), "T": Fraction(10**12),
    "P": Fraction(10**15), "E": Fraction(10**18),
    "Ki": Fraction(2**10), "Mi": Fraction(2**20), "Gi": Fraction(2**30), "Ti": Fraction(2**40),
    "Pi": Fraction(2**50), "Ei": Fraction(2**60),
}  # fmt: skip


class Duration(int):
    """A length of time in whole seconds, never negative: `10m`, `12h`, `1h30m`, `2d`, `0s`."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: object) -> Self:
        """Reads the text form. Raises Unreadable."""
        match = _DURATION.fullmatch(text) if isinstance(text, str) else None
        if not match or not text:
            raise Unreadable(text, "a duration", DURATION_ALLOWED)
        days, hours, minutes, seconds = (int(part[:12]) if part else 0 for part in match.groups())
        total = days * DAY + hours * HOUR + minutes * MINUTE + seconds
        if total > MAX_DURATION:
            raise Unreadable(text, "within a hundred years", f"a duration of at most {cls(MAX_DURATION)}")
        return cls(total)

    def __str__(self) -> str:
        """Canonical: days only for whole days beyond 72h, else hours, minutes and seconds."""
        if self > 3 * DAY and self % DAY == 0:
            return f"{self // DAY}d"
        hours, rest = divmod(int(self), HOUR)
        minutes, seconds = divmod(rest, MINUTE)
        parts = ((hours, "h"), (minutes, "m"), (seconds, "s"))
        return "".join(f"{n}{unit}" for n, unit in parts if n) or "0s"

    def __repr__(self) -> str:
        return f"Duration({int(self)})"


class Time(int):
    """A moment in whole Unix seconds, UTC: `2025-11-01T14:05:00Z`."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: object) -> Self:
        """Reads RFC 3339 with `Z` or an offset, seconds optional. Raises Unreadable."""
        if isinstance(text, datetime):  # YAML readers make datetimes of unquoted times
            if text.microsecond:
                raise Unreadable(text.isoformat(), "in whole seconds", TIME_ALLOWED)
            text = (text if text.tzinfo else text.replace(tzinfo=UTC)).isoformat()
        if not isinstance(text, str) or not _TIME.fullmatch(text):
            raise Unreadable(text, "a time", TIME_ALLOWED)
        try:
            return cls(_unix(datetime.fromisoformat(text)))
        except (ValueError, OverflowError):
            raise Unreadable(text, "a time that there is", f"{TIME_ALLOWED}, one that there is") from None

    def __str__(self) -> str:
        return (EPOCH + timedelta(seconds=int(self))).isoformat(timespec="seconds").replace("+00:00", "Z")

    def __repr__(self) -> str:
        return f"Time({int(self)})"


class OwnerPath(str):
    """An owner: names joined by colons, from the root down, e.g. `org:ai:rai:sys`."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: object) -> Self:
        """Checks the path. Raises Unreadable."""
        if not isinstance(text, str) or len(text) > MAX_OWNER or not _OWNER.fullmatch(text):
            raise Unreadable(text, "an owner", OWNER_ALLOWED)
        return cls(text)

    def ancestors(self) -> Iterator[OwnerPath]:
        """Its proper prefixes, longest first: `a:b:c` -> `a:b`, `a`."""
        path = str(self)
        while (cut := path.rfind(":")) >= 0:
            path = path[:cut]
            yield OwnerPath(path)


class Cpu(int):
    """CPU in thousandths of a core; a Kubernetes quantity such as `500m` or `4`."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: object) -> Self:
        """Reads a quantity of at most `MAX_CPU`, rounded up to a thousandth. Raises Unreadable."""
        return cls(_at_most(cls(MAX_CPU), -(-quantity(text) * 1000 // 1), text))

    def __str__(self) -> str:
        return f"{self // 1000}" if self % 1000 == 0 else f"{int(self)}m"


class Memory(int):
    """Memory in bytes; a Kubernetes quantity such as `512Mi` or `2Gi`."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: object) -> Self:
        """Reads a quantity of at most `MAX_MEMORY`, rounded up to a byte. Raises Unreadable."""
        return cls(_at_most(cls(MAX_MEMORY), -(-quantity(text) // 1), text))

    def __str__(self) -> str:
        for suffix in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki"):
            size = int(_SUFFIX[suffix])
            if self and self % size == 0:
                return f"{self // size}{suffix}"
        return f"{int(self)}"


def _at_most(most: int, amount: int, text: object) -> int:
    if amount > most:
        raise Unreadable(text, "as little as any machine has", f"at most {most}")
    return amount


@lru_cache(maxsize=65_536)
def _quantity_text(text: str) -> Fraction:
    match = _QUANTITY.fullmatch(text)
    if not match or len(text) > 40 or (match[3] or "") not in _SUFFIX:
        raise Unreadable(text, "a quantity", QUANTITY_ALLOWED)
    if match[2]:
        return Fraction(match[1] + match[2])
    return Fraction(match[1]) * _SUFFIX[match[3] or ""]


def quantity(value: object) -> Fraction:
    """The exact value of a Kubernetes quantity, ≥ 0. Raises Unreadable."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        raise Unreadable(value, "a quantity", QUANTITY_ALLOWED)
    return _quantity_text(value)


@lru_cache(maxsize=4096, typed=True)  # True is not 1
def parse_count(value: str | int | float) -> int:
    """A whole number of devices or pods from a quantity. Raises Unreadable."""
    exact = quantity(value)
    if exact.denominator != 1:
        raise Unreadable(value, "whole", "a whole number")
    return int(exact)


def exact(number: int | float) -> Fraction:
    """A decimal as it was written: 0.1 is a tenth, not its nearest binary fraction."""
    return Fraction(number) if isinstance(number, int) else Fraction(str(number))


@lru_cache
def milli(number: int | float) -> int:
    """Thousandths of it, rounded down: how credits, rates and discounts are counted."""
    return int(exact(number) * 1000)


def milli_gpu_seconds(gpu_hours: int | float) -> int:
    """GPU-hours in the ledger's unit, thousandths of a GPU-second, rounded down (spec §3.6)."""
    return int(exact(gpu_hours) * HOUR * 1000)


SCALARS: Final = (Duration, Time, OwnerPath, Cpu, Memory)
_READERS: Final[dict[Any, Callable[[str], Any]]] = {kind: lru_cache(maxsize=65_536)(kind.parse) for kind in SCALARS}


def dec_hook(kind: type, value: object) -> Any:
    """msgspec's hook for reading: makes a scalar of its text. Raises Unreadable."""
    if type(value) is str:
        return _READERS[kind](value)
    if kind not in SCALARS:
        raise NotImplementedError(f"{kind.__name__} is no scalar of the API")
    return kind.parse(value)


@lru_cache(maxsize=65_536, typed=True)
def enc_hook(value: object) -> str:
    """msgspec's hook for writing: the canonical text of a scalar. Cached, for texts repeat as in reading."""
    if not isinstance(value, SCALARS):
        raise NotImplementedError(f"{type(value).__name__} is no scalar of the API")
    return str(value)


def _unix(moment: datetime) -> int:
    """Unix seconds. Raises OverflowError where it is in no year from 1 to 9999 of UTC."""
    delta = moment.astimezone(UTC) - EPOCH
    return delta.days * DAY + delta.seconds
