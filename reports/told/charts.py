"""A report's picture as a Vega-Lite specification, and as SVG drawn from it on the server.

One SVG serves light and dark: its colours are CSS variables that the page sets (``--c0``, ``--ink`` …), and nothing in
it is an inline style, so that a page with a strict content policy may hold it. What a kind of chart wants of its rows:

    bars     x, x2 (times), y, series    stacked, each bar from x to x2
    across   label, y, series, mark      lying, stacked; mark, which may be left out: a line across the bar at that y;
                                         where there are too many labels the last of them are summed up as one
    each     the same                    of what does not add up, such as means: the last of them are left out
    lines    panel, x, y, bound          a panel each; bound, which may be left out or null: a dashed step
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any, Final

import pyarrow as pa

from jobtree.api import Refusal
from jobtree.api.values.escaped import escaped
from reports.read.definition import Chart

WIDE: Final = 1120
NARROW: Final = 328
"""Widths that a picture is drawn in, CSS pixels: its text keeps its size on a desk and on a phone."""
SERIES: Final = 8
"""Series that have a colour of their own; the rest is drawn together, as ``others``. Panels have one each, too."""
LABELS: Final = 16
"""Bars of a lying chart."""
EACH: Final = 42
"""The same of amounts that do not add up."""
LETTER: Final = 7.2
"""CSS pixels that a letter of a label may be wide: readers' fonts are not the one that the server measures with."""
OTHERS: Final = "others"
SPECIAL: Final = {"left": "rest", "free": "rest", OTHERS: "others", "nobody's": "warn", "stopped": "others"}
"""Series whose colour says what they are, wherever they stand."""
_COLUMNS: Final = {
    "bars": ("x", "x2", "y", "series"),
    "across": ("label", "y", "series"),
    "each": ("label", "y", "series"),
    "lines": ("panel", "x", "y"),
}
_DAY: Final = 86_400
Row = dict[str, Any]
Spec = dict[str, Any]


@dataclass(frozen=True)
class Picture:
    """A chart, ready to be shown. ``legend``: (series, CSS colour variable). ``wide``, ``narrow``: specifications for a
    desk and a phone; of ``lines`` one for each panel, in both.
    """

    title: str
    description: str
    legend: tuple[tuple[str, str], ...]
    wide: tuple[Spec, ...]
    narrow: tuple[Spec, ...]


def picture(chart: Chart, table: pa.Table) -> Picture | None:
    """The picture of a chart's rows; None where they hold nothing to draw. Raises Refusal where a column is missing."""
    for name in _COLUMNS[chart.kind]:
        if name not in table.column_names:
            raise Refusal(f"@chart {chart.kind} needs the column {name!r}, which its query does not have")
    rows = [
        {name: escaped(part) if isinstance(part, str) else part for name, part in row.items()} | {"y": float(row["y"])}
        for row in table.to_pylist()
        if row["y"] is not None
    ]
    if chart.kind == "lines":
        return _lines(chart.title, rows) if rows else None
    sums = {name: value for name, value in _sums(_fewer(rows), "series").items() if value}
    rows = [row for row in _fewer(rows) if row["y"]]
    if not rows:
        return None
    title = chart.title
    if chart.kind == "each" and len(labels := list(_sums(rows, "label"))) > EACH:
        rows = [row for row in rows if row["label"] in set(labels[:EACH])]
        title = _first(title, EACH, len(labels))
    colours = _colours(list(sums))
    ranked = ", ".join(f"{name} {value:,.1f}" for name, value in sums.items())
    draw = _bars if chart.kind == "bars" else partial(_across, most=EACH if chart.kind == "each" else LABELS)
    words = f"{'Stacked bars over time' if chart.kind == 'bars' else 'Bars'}; summed up: {ranked}."
    if chart.kind == "each":
        words = f"Bars; the longest: {max(rows, key=lambda row: row['y'])['label']}."
    legend = tuple(colours.items()) if len(colours) > 1 else ()
    specs = [(draw(rows, colours, width),) for width in (WIDE, NARROW)]
    return Picture(title, f"{words} The table has the figures.", legend, *specs)


def svg(spec: Spec, *, name: str) -> str:
    """A specification as SVG, of the accessible name that the element ``name`` has."""
    import vl_convert  # loads an engine for JavaScript: only where something is drawn

    drawn = str(vl_convert.vegalite_to_svg(spec))
    return drawn.replace("<svg ", f'<svg role="img" aria-labelledby="{name}" ', 1)


def _sums(rows: Sequence[Row], key: str) -> dict[str, float]:
    found: dict[str, float] = {}
    for row in rows:
        found[str(row[key])] = found.get(str(row[key]), 0.0) + row["y"]
    return found


def _fewer(rows: Sequence[Row]) -> list[Row]:
    """The rows, where there are too many series the smallest of them as one."""
    sums = _sums(rows, "series")
    if len(sums) <= SERIES:
        return list(rows)
    kept = set(sorted(sums, key=lambda name: (-sums[name], name))[: SERIES - 1])
    return [row if row["series"] in kept else {**row, "series": OTHERS} for row in rows]


def _colours(series: Sequence[str]) -> dict[str, str]:
    """Series → colour, in the order in which they come, those of `SPECIAL` last."""
    plain = [name for name in series if name not in SPECIAL]
    ordered = sorted(series, key=lambda name: name in SPECIAL)
    return {name: SPECIAL.get(name) or f"c{plain.index(name)}" for name in ordered}


def _spec(width: int, height: int, **parts: Any) -> Spec:
    text = {"labelColor": "var(--quiet)", "labelFontSize": 12, "titleColor": "var(--quiet)", "domain": False}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": width,
        "height": height,
        "autosize": {"type": "fit", "contains": "padding"},
        "background": None,
        "padding": 4,
        "config": {
            "aria": False,
            "font": "system-ui, sans-serif",
            "view": {"stroke": None},
            "axis": {**text, "gridColor": "var(--line)", "tickColor": "var(--line)", "title": None},
            "axisY": {"ticks": False},
        },
        **parts,
    }


def _scale(colours: Mapping[str, str]) -> Spec:
    names = [f"var(--{colour})" for colour in colours.values()]
    return {"field": "series", "type": "nominal", "legend": None, "scale": {"domain": list(colours), "range": names}}


def _time(rows: Sequence[Row], last: str, width: int) -> Spec:
    """A time axis with short dates that lie within the plot."""
    length = (max(row[last] for row in rows) - min(row["x"] for row in rows)).total_seconds()
    form = "%H:%M" if length <= _DAY else "%-d %b %H:%M" if length <= 3 * _DAY else "%-d %b"
    form = form if length <= 400 * _DAY else "%b %Y"
    axis = {"format": form, "labelFlush": True, "labelOverlap": True, "labelSeparation": 8, "grid": False,
            "tickCount": max(3, width // 110)}  # fmt: skip
    return {"field": "x", "type": "temporal", "scale": {"type": "utc"}, "axis": axis}


def _amount(ticks: int = 4) -> Spec:
    """An axis of amounts, short: 0, 0.02, 20k, 1.5M. No prefix below 1: people read ``20m`` as minutes."""
    short = "abs(datum.value) < 1 ? format(datum.value, '~r') : replace(format(datum.value, '~s'), 'G', 'B')"
    return {"field": "y", "type": "quantitative", "axis": {"tickCount": ticks, "labelExpr": short}}


def _bars(rows: Sequence[Row], colours: Mapping[str, str], width: int) -> Spec:
    order = {name: place for place, name in enumerate(colours)}
    begins = sorted({row["x"] for row in rows})
    x = _time(rows, "x2", width)
    bar = (width - 50) / len(begins)
    letters = len(begins[0].strftime(x["axis"]["format"].replace("-", "")))
    # The first label is moved into the plot, half its width to the right; the last one is to end within it.
    every = max(-(-len(begins) // x["axis"]["tickCount"]), math.ceil((1.5 * LETTER * letters + 8) / bar))
    last = len(begins) - LETTER * letters / bar / 2
    x["scale"] = {"type": "utc", "domain": [_iso(begins[0]), _iso(max(row["x2"] for row in rows))]}
    labelled = [_iso(each) for place, each in enumerate(begins) if place % every == 0 and place + 0.5 <= last]
    x["axis"] |= {"values": labelled, "tickOffset": bar / 2}
    values: list[Row] = []
    for _, group in groupby(sorted(rows, key=lambda row: row["x"]), key=lambda row: row["x"]):
        floor = 0.0
        for row in sorted(group, key=lambda row: order[row["series"]]):
            gap = (row["x2"] - row["x"]) / 12
            values.append({"x": _iso(row["x"] + gap), "x2": _iso(row["x2"] - gap), "y": floor, "y2": floor + row["y"],
                           "series": row["series"]})  # fmt: skip
            floor += row["y"]
    return _spec(
        width,
        260,
        data={"values": [value for value in values if value["y2"] > value["y"]]},
        mark="rect",
        encoding={"x": x, "x2": {"field": "x2"}, "y": _amount(), "y2": {"field": "y2"},
                  "color": _scale(colours)},
    )  # fmt: skip


def _across(rows: Sequence[Row], colours: Mapping[str, str], width: int, most: int = LABELS) -> Spec:
    labels = list(_sums(rows, "label"))
    shown = labels if len(labels) <= most else labels[: most - 1]
    merged = [row if row["label"] in set(shown) else {**row, "label": _more(labels, shown)} for row in rows]
    names = [*shown, *([] if len(shown) == len(labels) else [_more(labels, shown)])]
    order = {name: place for place, name in enumerate(colours)}
    values = [{"label": row["label"], "y": row["y"], "series": row["series"], "order": order[row["series"]]}
              for row in merged]  # fmt: skip
    marks = [{"label": row["label"], "y": float(row["mark"])} for row in merged if row.get("mark") is not None]
    letters = 40 if width == WIDE else 20
    extent = LETTER * min(letters, max(map(len, names)))
    tail = f"substring(datum.value, length(datum.value) - {letters - 1})"
    ends = f"length(datum.value) > {letters} ? '…' + {tail} : datum.value"
    axis = {"grid": False, "ticks": False, "labelLimit": 0, "minExtent": extent, "labelExpr": ends,
            "labelColor": "var(--ink)"}  # fmt: skip
    place = {"field": "label", "type": "nominal", "sort": names, "axis": axis}
    amount = _amount(4 if width == WIDE else 3)
    bars = {"mark": {"type": "bar", "height": {"band": 0.7}},
            "encoding": {"y": place, "x": amount, "color": _scale(colours), "order": {"field": "order"}},
            "data": {"values": values}}  # fmt: skip
    tick = {"mark": {"type": "tick", "color": "var(--ink)", "thickness": 2, "height": {"band": 0.9}},
            "encoding": {"y": place, "x": amount}, "data": {"values": marks}}  # fmt: skip
    return _spec(width, 40 + 30 * len(names), layer=[bars, tick] if marks else [bars])


def _more(labels: Sequence[str], shown: Sequence[str]) -> str:
    return f"{len(labels) - len(shown)} others"


def _lines(title: str, rows: Sequence[Row]) -> Picture:
    panels: dict[str, list[Row]] = {}
    for row in rows:
        panels.setdefault(str(row["panel"]), []).append(row)
    specs = tuple(_panel(name, found, place) for place, (name, found) in enumerate(list(panels.items())[:SERIES]))
    ends = ", ".join(f"{name} {found[-1]['y']:,.1f}" for name, found in panels.items())
    title = title if len(panels) <= SERIES else _first(title, SERIES, len(panels))
    return Picture(title, f"A line each; at the end: {ends}. The table has the figures.", (), specs, specs)


def _first(title: str, shown: int, there: int) -> str:
    return f"{title} (the first {shown} of {there})"


def _panel(name: str, rows: Sequence[Row], place: int) -> Spec:
    colour = f"var(--c{place})"
    values = [{"x": _iso(row["x"]), "y": row["y"], "bound": row.get("bound")} for row in rows]
    x, y = _time(rows, "x", NARROW), _amount()
    area = {"type": "area", "color": colour, "opacity": 0.25, "line": {"color": colour, "strokeWidth": 2}}
    layers: list[Spec] = [{"mark": area, "encoding": {"x": x, "y": y}}]
    if any(value["bound"] is not None for value in values):
        mark = {
            "type": "line",
            "interpolate": "step-before",
            "strokeDash": [4, 3],
            "color": "var(--ink)",
            "strokeWidth": 1.5,
        }
        layers.append({"mark": mark, "encoding": {"x": x, "y": {**y, "field": "bound"}}})
    heading = {"text": name, "anchor": "start", "color": "var(--ink)", "fontSize": 13, "limit": NARROW - 10}
    return _spec(NARROW, 190, data={"values": values}, layer=layers, title=heading)


def _iso(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
