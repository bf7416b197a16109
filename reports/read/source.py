"""What a report reads: the lake's cycles of a period, stitched into tables (`exporters.lake.foldtables`)."""

from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

from exporters.lake import days
from exporters.lake.fold import Cycle, Fold, Trouble, fold, read_cycle
from exporters.lake.foldtables import FOLDS
from exporters.lake.lake import Lake
from jobtree.api import Refusal, Time

_Part = Literal["first", "last", "all"]
"""Which of a day's cycles."""
_READERS: Final = 4
"""Days that are read at the same time."""


@dataclass(frozen=True)
class Source:
    """Tables of `FOLDS` over a whole period (``leases`` may hold several forms of one), and what could not be read.

    ``opening`` is that of the first cycle, ``discounts`` those of the last one.
    """

    tables: dict[str, pa.Table]
    troubles: list[Trouble]

    @cached_property
    def begin(self) -> int:
        """The first second that anything is known of."""
        begun = [pc.min(self.tables["leases"]["start"]).as_py()]
        begun += [spans[0]["from"] for spans in self.tables["opening"]["spans"].to_pylist()]
        return min([self.first, *(int(each) for each in begun if each is not None)])

    @property
    def first(self) -> int:
        """The time of the first cycle, Unix seconds."""
        return int(self.tables["cycles"]["time"][0].as_py())

    @property
    def last(self) -> int:
        """The time of the last cycle: nothing is known after it."""
        return int(self.tables["cycles"]["time"][-1].as_py())


def of_cycle(lake: Lake, manifest: Path) -> Source:
    """One cycle alone. Raises Refusal where its manifest cannot be read, or its plan was not carried out."""
    return _stitched([fold(lake, [read_cycle(manifest)])], [])


def of_period(root: Path | str, since: int | None, until: int | None, names: Collection[str] = FOLDS.keys()) -> Source:
    """Every cycle that says something of [since, until), Unix seconds; None is the lake's own begin or end.

    ``names``: the tables to read; the others are empty. Cycles whose plan was not carried out say nothing.

    Those are also the last one before the period, for what stood as it began, and the first one after it, which saw
    what ended in it. Raises Refusal where the lake holds no cycle that can be read.
    """
    lake = Lake(root)
    chosen = list(_chosen(days.dates(lake.root), since, until))

    def read(each: tuple[str, _Part]) -> tuple[Fold, list[Trouble]]:
        date, part = each
        said: list[Trouble] = []
        done = days.is_done(lake.root, date) or (days.is_begun(lake.root, date) and not days.manifests(lake.root, date))
        found = _compacted(lake, date, names, said) if done else _loose(lake, date, part, said)
        return found, said

    with ThreadPoolExecutor(_READERS) as pool:  # decompressing leaves Python to others
        read_folds = list(pool.map(read, chosen))
    troubles = [trouble for _, said in read_folds for trouble in said]
    folds = [found for found, _ in read_folds if found.tables["cycles"].num_rows]
    if not folds:
        raise Refusal(f"{root} holds no cycle that can be read; `jobtree --state FILE cycle` writes one")
    return _stitched(folds, troubles)


def _chosen(dates: Sequence[str], since: int | None, until: int | None) -> Iterator[tuple[str, _Part]]:
    """The days to read, and which of their cycles: of the days before and after the period the nearest one only."""
    begin = "" if since is None else str(Time(since))[:10]
    end = "9999" if until is None else str(Time(until))[:10]
    yield from ((date, "last") for date in [date for date in dates if date < begin][-1:])
    yield from ((date, "all") for date in dates if begin <= date <= end)
    yield from ((date, "first") for date in [date for date in dates if date > end][:1])


def _compacted(lake: Lake, date: str, names: Collection[str], troubles: list[Trouble]) -> Fold:
    """A compacted day; one with a spoilt file is folded again from its records."""
    troubles += _late(lake, date)
    try:
        return Fold(days.read(lake.root, date, names), [])
    except Refusal as refusal:
        troubles.append(Trouble(refusal.subject, f"{refusal.problem}; the day is read from its records instead"))
    try:
        return fold(lake, days.cycles(lake.root, date))
    except Refusal as refusal:
        troubles.append(Trouble(refusal.subject, f"{refusal.problem}; the day {date} is left out"))
        return fold(lake, [])


def _late(lake: Lake, date: str) -> list[Trouble]:
    """Cycles that a compacted day does not hold: two clocks disagree, or they could not be read when it was made."""
    try:
        late = days.late(lake.root, date)
    except Refusal as refusal:
        return [Trouble(refusal.subject, f"{refusal.problem}; whether other cycles are in the day is not known")]
    return [Trouble(str(path), f"the day {date} was compacted without this cycle; it is left out") for path in late]


def _loose(lake: Lake, date: str, part: _Part, troubles: list[Trouble]) -> Fold:
    """A day whose cycles are files of their own."""
    paths = days.manifests(lake.root, date)
    found = _read(paths[::-1] if part == "last" else paths, troubles)
    return fold(lake, list(found if part == "all" else islice(found, 1)))


def _read(paths: Sequence[Path], troubles: list[Trouble]) -> Iterator[Cycle]:
    for path in paths:
        try:
            yield read_cycle(path)
        except Refusal as refusal:
            troubles.append(Trouble(str(path), f"{refusal.problem}; this cycle is left out"))


def _stitched(folds: Sequence[Fold], troubles: list[Trouble]) -> Source:
    """One table of each name: what stood at the end of a fold stood until the next one began."""
    begins = [fold.tables["cycles"]["time"][0] for fold in folds]
    tables = {}
    for name, schema in FOLDS.items():
        parts = []
        for place, each in enumerate(folds):
            table = each.tables[name]
            if "until" in schema.names and place + 1 < len(folds):
                until = table["until"].fill_null(begins[place + 1])
                table = table.set_column(schema.get_field_index("until"), "until", until)
            parts.append(table)
        tables[name] = pa.concat_tables(parts)
    tables["opening"] = _of_time(tables["opening"], begins[0])
    tables["discounts"] = _of_time(tables["discounts"], folds[-1].tables["cycles"]["time"][-1])
    return Source(tables, [*troubles, *(trouble for each in folds for trouble in each.troubles)])


def _of_time(table: pa.Table, time: pa.Scalar) -> pa.Table:
    return table.filter(pc.equal(table["time"], time))
