"""Names of cycles: their second, as ``20260101T000000Z``, and from the second one in it on a number (spec §1).

Plans have the name in lower case, and so have the names of Leases in the middle.
"""

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from jobtree.api import Time

_NAME: Final = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z(?:-([1-9]\d{0,8}))?", re.ASCII | re.IGNORECASE)


class Moment(NamedTuple):
    """Moment of a cycle: Unix seconds, and the how-manieth it was in that second. Later ones are greater."""

    at: int
    number: int = 1

    @property
    def name(self) -> str:
        """Name of the cycle."""
        stamp = str(Time(self.at)).replace("-", "").replace(":", "")
        return stamp if self.number == 1 else f"{stamp}-{self.number}"


def moment_of(name: str) -> Moment | None:
    """The moment of a cycle's name, in either case; None where that is no such name."""
    told = _NAME.fullmatch(name)
    if told is None:
        return None
    *parts, number = told.groups()
    try:
        return Moment(int(Time.parse("{}-{}-{}T{}:{}:{}Z".format(*parts))), int(number or 1))
    except ValueError:
        return None


def number_after(names: Iterable[str], at: int) -> int:
    """The number of a cycle at Unix second ``at`` where those of these ``names`` were before."""
    there = [moment for name in names if (moment := moment_of(name)) is not None and moment.at == at]
    return max((moment.number for moment in there), default=0) + 1
