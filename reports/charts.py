"""Charts as shapes: where each bar and line of a report goes, in percent of the plot. The page draws them as SVG."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd

from jobtree.api import Refusal
from reports.definition import Chart

SERIES: Final = 8
"""Series that have a colour of their own; the rest is drawn together, as ``others``."""
LABELS: Final = 6
"""Labels that fit below a chart on a phone."""
OTHERS: Final = "others"


@dataclass(frozen=True)
class Bar:
    """A part of a bar; ``y`` from the top, all in percent of the plot."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class Series:
    """One colour of a chart: bars, or the points of a line as SVG wants them."""

    name: str
    colour: int
    bars: tuple[Bar, ...] = ()
    points: str = ""


@dataclass(frozen=True)
class Drawing:
    """A chart, ready to be drawn. ``ticks`` and ``labels``: (percent from the bottom or the left, text)."""

    title: str
    description: str
    series: tuple[Series, ...]
    ticks: tuple[tuple[float, str], ...]
    labels: tuple[tuple[float, str], ...]


def draw(rows: pd.DataFrame, chart: Chart) -> Drawing | None:
    """The chart of a report's rows; None where they hold nothing to draw. Raises Refusal where a column is missing."""
    for name in (chart.x, chart.y, *([chart.by] if chart.by else [])):
        if name not in rows.columns:
            raise Refusal(f"@chart names the column {name!r}, which the report's rows do not have")
    by = rows[chart.by].astype(str) if chart.by else pd.Series(chart.y, index=rows.index)
    cells = pd.DataFrame({"x": rows[chart.x].astype(str), "by": by, "y": rows[chart.y].astype(float).fillna(0.0)})
    if not len(cells) or not cells["y"].any():
        return None
    table = cells.pivot_table(index="x", columns="by", values="y", aggfunc="sum", fill_value=0.0, sort=False)
    table = table.reindex(pd.unique(cells["x"]))
    table = _fewer(table)
    peak = float((table.sum(axis=1) if chart.kind == "bars" else table.max(axis=1)).max())
    ticks = _ticks(peak)
    series = (_bars if chart.kind == "bars" else _lines)(table, ticks[-1])
    per = f" per {_words(chart.by)}" if chart.by else ""
    title = f"{_words(chart.y)} by {_words(chart.x)}{per}"
    largest = table.sum().sort_values(ascending=False, kind="stable")
    ranked = ", ".join(f"{name} {value:,.1f}" for name, value in largest.items())
    kind = "Stacked bars" if chart.kind == "bars" else "Lines"
    description = f"{kind} over {table.index[0]} to {table.index[-1]}; summed up: {ranked}. The table has every figure."
    return Drawing(
        title, description, series, tuple((100 * t / ticks[-1], _short(t)) for t in ticks), _labels(table, chart)
    )


def _fewer(table: pd.DataFrame) -> pd.DataFrame:
    """The largest series, by their sum and then by name, and the others as one."""
    sums = table.sum()
    ranked = sorted(table.columns, key=lambda name: (-float(sums[name]), str(name)))
    if len(ranked) <= SERIES:
        return table[ranked]
    kept = table[ranked[: SERIES - 1]].copy()
    kept[OTHERS] = table[ranked[SERIES - 1 :]].sum(axis=1)
    return kept


def _bars(table: pd.DataFrame, top: float) -> tuple[Series, ...]:
    slot = 100 / len(table)
    width = slot * (0.8 if len(table) <= 60 else 1.0)
    floors = [0.0] * len(table)
    found = []
    for colour, name in enumerate(table.columns):
        bars = []
        for place, value in enumerate(table[name]):
            height = 100 * float(value) / top
            floors[place] += height
            if height > 0:
                bars.append(Bar(place * slot + (slot - width) / 2, 100 - floors[place], width, height))
        found.append(Series(str(name), colour, bars=tuple(bars)))
    return tuple(found)


def _lines(table: pd.DataFrame, top: float) -> tuple[Series, ...]:
    step = 100 / max(1, len(table) - 1)
    found = []
    for colour, name in enumerate(table.columns):
        heights = [100 - 100 * float(value) / top for value in table[name]]
        points = " ".join(f"{place * step:.3f},{height:.3f}" for place, height in enumerate(heights))
        found.append(Series(str(name), colour, points=points))
    return tuple(found)


def _labels(table: pd.DataFrame, chart: Chart) -> tuple[tuple[float, str], ...]:
    every = math.ceil(len(table) / LABELS)
    slot = 100 / len(table) if chart.kind == "bars" else 100 / max(1, len(table) - 1)
    shift = slot / 2 if chart.kind == "bars" else 0
    return tuple((place * slot + shift, str(table.index[place])) for place in range(0, len(table), every))


def _ticks(peak: float) -> Sequence[float]:
    """Round numbers from 0 to just above ``peak``, four or five of them."""
    power = 10 ** math.floor(math.log10(peak / 4)) if peak > 0 else 1.0
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power * 4 >= peak)
    return [number * step for number in range(math.ceil(peak / step - 1e-9) + 1)]


def _short(value: float) -> str:
    for size, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{suffix}"
    return f"{value:g}"


def _words(column: str) -> str:
    return column.replace("_", " ")
