"""What is odd in a lake (`notices.sql`), as the troubles that every report on it names."""

from collections import Counter
from collections.abc import Iterable, Iterator
from importlib import resources
from itertools import groupby
from typing import Final, Literal

import duckdb

from exporters.lake.fold import Trouble
from jobtree.api import Time
from reports.read.source import Source

SHOWN: Final = 3
"""Objects with one kind of oddity that are named; the others are counted."""
ODD: Final = resources.files("reports.read").joinpath("notices.sql").read_text(encoding="utf-8")
"""What is odd, as SQL."""


Edge = Literal["begins", "ends"]


def outside(source: Source, since: int | None, until: int | None) -> tuple[Edge, int] | None:
    """Where the lake ends, or begins, in Unix seconds, for a period that it knows nothing of; None for any other."""
    if since is not None and since > source.last:
        return "ends", source.last
    return ("begins", source.begin) if until is not None and until <= source.begin else None


def notices(
    database: duckdb.DuckDBPyConnection, source: Source, since: int | None, until: int | None
) -> Iterator[Trouble]:
    """Everything odd in the period, what could not be read included. ``since``, ``until``: as asked, Unix seconds."""
    if beyond := outside(source, since, until):
        edge, at = beyond
        asked = f"from {Time(since or 0)}" if edge == "ends" else f"until {Time(until or 0)}"
        yield Trouble("The period", f"it was asked for {asked}, and the lake {edge} at {Time(at)}")
    elif until is not None and until > source.last:
        last = f"the lake's last cycle is of {Time(source.last)}: figures are up to that one"
        yield Trouble("The period", f"it was asked for until {Time(until)}, and {last}")
    yield from _fewer(source.troubles)
    for (_, kind), group in groupby(database.sql(ODD).fetchall(), key=lambda row: row[:2]):
        rows = list(group)
        yield from (Trouble(f"{kind} {name}", message) for _, _, name, message in rows[:SHOWN])
        if len(rows) > SHOWN:
            yield Trouble(f"{kind}s", f"{len(rows) - SHOWN} more like the last one")


def _fewer(troubles: Iterable[Trouble]) -> Iterator[Trouble]:
    """The first few of each kind: a lake of another version may have the same trouble with thousands of files."""
    counts = Counter[str]()
    for trouble in troubles:
        counts[trouble.message] += 1
        if counts[trouble.message] <= SHOWN:
            yield trouble
    for message, count in counts.items():
        if count > SHOWN:
            yield Trouble("Files", f"{count - SHOWN} more of which is to be said: {message}")
