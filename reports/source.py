"""What a report reads: the lake's cycles of a period, stitched into tables (`exporters.foldtables`)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pyarrow as pa

from exporters import storage
from exporters.fold import Cycle, Fold, Trouble, fold
from exporters.foldtables import FOLDS
from exporters.lake import Lake, read_manifest
from jobtree.api import Refusal, Time


@dataclass(frozen=True)
class Source:
    """Tables of `FOLDS` over a whole period (``leases`` may hold several forms of one), and what could not be read."""

    tables: dict[str, pa.Table]
    troubles: list[Trouble]

    @property
    def first(self) -> int:
        """The time of the first cycle, Unix seconds."""
        return int(self.tables["cycles"]["time"][0].as_py())

    @property
    def last(self) -> int:
        """The time of the last cycle: nothing is known after it."""
        return int(self.tables["cycles"]["time"][-1].as_py())


def of_cycle(lake: Lake, manifest: Path) -> Source:
    """One cycle alone. Raises Refusal where its manifest cannot be read."""
    return _stitched([fold(lake, [Cycle(manifest, read_manifest(manifest))])], [])


def of_period(root: Path | str, since: int | None = None, until: int | None = None) -> Source:
    """Every cycle that says something of [since, until), Unix seconds; None is the lake's own begin or end.

    Those are also the last one before the period, for what stood as it began, and the first one after it, which saw
    what ended in it. Raises Refusal where the lake holds no cycle that can be read.
    """
    lake = Lake(root)
    troubles: list[Trouble] = []
    days = [(date, sorted(paths)) for date, paths in groupby(_manifests(lake.root), key=lambda path: path.parent.name)]
    folds = []
    for paths in _chosen(days, since, until):
        cycles = list(_read(paths, troubles))
        if cycles:
            folds.append(fold(lake, cycles))
    if not folds:
        raise Refusal(f"{root} holds no cycle that can be read; `jobtree --state FILE cycle` writes one")
    return _stitched(folds, troubles)


def _manifests(root: Path) -> list[Path]:
    return sorted(storage.glob(root, "cycles/date=*/*.json"), key=lambda path: (path.parent.name, path.name))


def _chosen(days: Sequence[tuple[str, list[Path]]], since: int | None, until: int | None) -> Iterator[list[Path]]:
    """The manifests to read, day by day; of the days before and after the period the nearest cycle only."""
    begin = None if since is None else f"date={str(Time(since))[:10]}"
    end = None if until is None else f"date={str(Time(until))[:10]}"
    before = [paths for date, paths in days if begin is not None and date < begin]
    after = [paths for date, paths in days if end is not None and date > end]
    if before:
        yield before[-1][-1:]
    yield from (p for date, p in days if (begin is None or date >= begin) and (end is None or date <= end))
    if after:
        yield after[0][:1]


def _read(paths: Sequence[Path], troubles: list[Trouble]) -> Iterator[Cycle]:
    for path in paths:
        try:
            cycle = Cycle(path, read_manifest(path))
        except Refusal as refusal:
            troubles.append(Trouble(str(path), f"{refusal.problem}; this cycle is left out"))
            continue
        if cycle.stamp != path.stem:
            said = f"its name and its time, {cycle.manifest.at}, disagree"
            troubles.append(Trouble(str(path), f"{said}; this cycle is left out"))
            continue
        yield cycle


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
    return Source(tables, [*troubles, *(trouble for each in folds for trouble in each.troubles)])
