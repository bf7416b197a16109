"""Times as people type them: RFC 3339, a day, or a local time with its zone."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from jobtree.api.values.errors import Unreadable
from jobtree.api.values.scalars import Time

ALLOWED: Final = (
    "a time such as 2025-11-01T14:05:00Z, a day such as 2025-11-01 (its first second, UTC),"
    ' or a local time with its zone such as "2025-11-01 15:05 Europe/Berlin" or 2025-11-01T15:05+01:00'
)
_LOCAL: Final = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ](?P<clock>[0-9]{2}:[0-9]{2}(?::[0-9]{2})?))?"
    r" ?(?P<zone>Z|[+-][0-9]{2}:[0-9]{2}|[A-Za-z]+(?:[/_+-][A-Za-z0-9_+-]+)*)?",
    re.ASCII,
)


def moment(text: str) -> int:
    """Unix seconds of a time as it is typed; a day without a clock is its first second, in UTC unless it names a zone.

    Raises Unreadable: also for a clock without a zone, and for a local time that its zone has twice or never.
    """
    match = _LOCAL.fullmatch(text)
    if match is None:
        raise Unreadable(text, "a time", ALLOWED)
    typed = f"{match['day']}T{match['clock'] or '00:00'}"
    zone = match["zone"] or ("" if match["clock"] else "Z")
    if not zone:
        allowed = f'{typed}Z (UTC), {typed}+01:00, or "{match["day"]} {match["clock"]} Europe/Berlin"'
        raise Unreadable(text, "a time with its zone", allowed)
    is_offset = re.fullmatch(r"Z|[+-][0-9:]+", zone) is not None
    try:
        found = int(Time.parse(typed + (zone if is_offset else "Z")))
    except Unreadable:  # which speaks of what is completed here
        raise Unreadable(text, "a time that there is", ALLOWED) from None
    return found if is_offset else _in_zone(text, found, zone)


def _in_zone(text: str, clock: int, name: str) -> int:
    """``clock``: the local time as if it were UTC."""
    from zoneinfo import ZoneInfo

    try:
        zone = ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown, a path that leaves the folder of zones, a folder in it
        raise Unreadable(text, f"a time in a zone that is known ({name} is not)", ALLOWED) from None
    local = datetime.fromtimestamp(clock, UTC).replace(tzinfo=zone)
    found = sorted({int(local.replace(fold=fold).timestamp()) for fold in (0, 1)})
    real = [
        each for each in found if datetime.fromtimestamp(each, zone).replace(tzinfo=None) == local.replace(tzinfo=None)
    ]
    if len(real) == 1:
        return real[0]
    offsets = (f"{_stamp(clock)}{_offset(datetime.fromtimestamp(each, zone).utcoffset())}" for each in found)
    what = (
        "a time that there is: clocks are put forward over it" if not real else "one time: clocks are put back over it"
    )
    raise Unreadable(text, what, f"an offset, as {' or '.join(offsets)}")


def _stamp(clock: int) -> str:
    return str(Time(clock)).removesuffix("Z")


def _offset(length: timedelta | None) -> str:
    minutes = int((length or timedelta()).total_seconds()) // 60
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
