"""The clock of the cases: T0, and times told from it."""

import re
from datetime import UTC, datetime, timedelta
from typing import Final

T0: Final = "2026-01-01T00:00:00Z"
_START: Final = datetime(2026, 1, 1, tzinfo=UTC)
_UNITS: Final = {"d": 86400, "h": 3600, "m": 60, "s": 1}


def seconds(span: str) -> int:
    """``+1h30m`` -> 5400, ``-24h`` -> -86400, ``0s`` -> 0."""
    parts = re.findall(r"(\d+)([dhms])", span)
    total = sum(int(number) * _UNITS[unit] for number, unit in parts)
    assert "".join(number + unit for number, unit in parts) == span.lstrip("+-"), f"not a span of time: {span!r}"
    return -total if span.startswith("-") else total


def moment(when: str) -> str:
    """RFC 3339 of a time told from T0 (``+1h``, ``-24h``); any other text is a time already."""
    if not when.startswith(("+", "-")):
        return when
    return (_START + timedelta(seconds=seconds(when))).strftime("%Y-%m-%dT%H:%M:%SZ")


def unix(when: str) -> int:
    """Unix seconds of a time in either form."""
    return int(datetime.fromisoformat(moment(when)).timestamp())


def rfc3339(at: int) -> str:
    """The other way: Unix seconds as text."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
