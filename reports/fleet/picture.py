"""A picture of the fleet: a block per GPU, domains side by side, coloured by who holds it."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import vl_convert

from jobtree.api.values.counted import counted
from jobtree.api.values.escaped import escaped
from reports.fleet.slots import DomainSlots, Slot

# Okabe and Ito's colours, told apart by colour-blind readers too; then darker mates of them.
PALETTE: Final = (
    "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#B8A800", "#7A5195", "#00506B", "#8C5A00",
)  # fmt: skip
OTHERS: Final = "#8A8F98"
FOREIGN: Final = "#3D4148"
EMPTY: Final = "#F3F4F6"
LINE: Final = "#C9CDD3"
INK: Final = "#1F2328"
QUIET: Final = "#57606A"
STOPPED: Final = "#CF222E"
PALE: Final = 0.4
"""Opacity of a spare."""
LEGIBLE: Final = 6.0
"""CSS pixels below which nobody reads a name."""
TITLE: Final = "GPUs by owner of the run"
FONT: Final = "DejaVu Sans, sans-serif"
Row = dict[str, Any]
Spec = dict[str, Any]


def draw_fleet(domains: Sequence[DomainSlots], paths: Sequence[Path], *, title: str) -> None:
    """Draw the fleet into ``paths`` (``.svg``, ``.png``); the same fleet gives the same bytes.

    A node is a column of blocks, ordinal 0 at the bottom, its name below; where there is no room for names to be read,
    the domain's nodes are named by their first and last. Owners are coloured, most GPUs first, as far as there are
    colours; the rest share a grey. A run that the plan starts has a dot on each of its blocks.
    """
    spec = fleet(domains, title=title)
    for path in paths:
        if path.suffix == ".svg":
            path.write_text(str(vl_convert.vegalite_to_svg(spec)), encoding="utf-8")
        else:
            path.write_bytes(bytes(vl_convert.vegalite_to_png(spec, scale=1.5)))


def fleet(domains: Sequence[DomainSlots], *, title: str) -> Spec:
    """The picture as a Vega-Lite specification, in blocks: y is 0 at the top and falls."""
    rows, colours = _rows(domains), _colours(domains)
    width = max((sum(_width(d) for d in row) for row in rows), default=10.0)
    size = min(26.0, max(6.0, 1000 / width))  # CSS pixels a block
    names = _Names.fitting(domains, size)
    marks: list[Row] = []
    y = 0.0
    for row in rows:
        x = 0.0
        for domain in row:
            marks += _domain(domain, x, y, colours, names)
            x += _width(domain)
        y -= _row_height(row) + names.blocks
    step = max(1.0, 16 / size)  # blocks from one line of the legend to the next
    legend = _legend(domains, colours)
    marks += _key(legend, width + 1, step)
    bottom = min(y, -step * (len(legend) + 2))
    font = round(max(7.0, min(11.0, size * 0.55)), 1)
    words = max(len(TITLE), *(len(text) for text, _ in legend))
    high, wide = -bottom, width + 1 + 1.2 * step + words * 0.7 * font / size
    marks = [{**mark, "text": escaped(mark["text"])} if "text" in mark else mark for mark in marks]
    scales = {"x": {"domain": [-0.2, wide], "nice": False}, "y": {"domain": [bottom, 0], "nice": False}}
    place = {name: {"field": name, "type": "quantitative", "axis": None, "scale": scales[name]} for name in "xy"}
    ends = {"x2": {"field": "x2"}, "y2": {"field": "y2"}}
    plain: Spec = {"type": "nominal", "scale": None, "legend": None}
    text = {"text": {"field": "text"}, "color": {"field": "colour", **plain}}
    layers: list[tuple[str, Spec, Spec]] = [
        ("block", {"type": "rect", "stroke": LINE, "strokeWidth": 0.5},
         {**place, **ends, "fill": {"field": "colour", **plain},
          "fillOpacity": {"field": "opacity", "type": "quantitative", "scale": None, "legend": None}}),
        ("line", {"type": "rule", "stroke": STOPPED, "strokeWidth": 2}, {**place, "x2": ends["x2"]}),
        ("dot", {"type": "point", "shape": "circle", "filled": True, "fill": "white", "stroke": INK,
                 "strokeWidth": 0.8, "opacity": 1, "size": size}, place),
        ("head", {"type": "text", "align": "left", "baseline": "middle", "fontWeight": "bold", "fontSize": font + 1},
         {**place, **text}),
        ("name", names.mark(), {**place, **text}),
        ("text", {"type": "text", "align": "left", "baseline": "middle", "fontSize": font}, {**place, **text}),
    ]  # fmt: skip
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "width": round(wide * size),
        "height": round(high * size),
        "background": "white",
        "padding": 12,
        "title": {"text": escaped(title), "anchor": "start", "fontSize": 16, "color": INK},
        "config": {"aria": False, "font": FONT, "view": {"stroke": None}},
        "layer": [
            {"data": {"values": [m for m in marks if m["kind"] == kind]}, "mark": mark, "encoding": encoding}
            for kind, mark, encoding in layers
        ],
    }


def _rows(domains: Sequence[DomainSlots]) -> list[list[DomainSlots]]:
    """Domains in reading order, a new row where the next one would not fit; the whole about twice as wide as high."""
    area = sum(_width(d) * _row_height([d]) for d in domains)
    across = max(24, math.isqrt(int(2 * area)))
    rows: list[list[DomainSlots]] = []
    used = float(across)
    for domain in domains:
        if used + _width(domain) > across or not rows:
            rows.append([])
            used = 0
        rows[-1].append(domain)
        used += _width(domain)
    return rows


def _width(domain: DomainSlots) -> float:
    """Columns that a domain takes: its nodes and a gap, and room for its name."""
    return max(len(domain.nodes), 0.6 * len(domain.name)) + 1


def _row_height(row: Sequence[DomainSlots]) -> float:
    return max((len(n.slots) for d in row for n in d.nodes), default=1) + 3.0


def _colours(domains: Sequence[DomainSlots]) -> dict[str, str]:
    counts = Counter(s.owner for d in domains for n in d.nodes for s in n.slots if s.owner)
    ranked = sorted(counts, key=lambda owner: (-counts[owner], owner))
    return {owner: PALETTE[i] if i < len(PALETTE) else OTHERS for i, owner in enumerate(ranked)}


@dataclass(frozen=True)
class _Names:
    """How nodes are named below their columns: at ``font`` CSS pixels, upright or not, on ``blocks`` of height.

    Without ``each`` only the first and last of a domain are, in one line.
    """

    each: bool
    font: float
    upright: bool
    blocks: float

    @classmethod
    def fitting(cls, domains: Sequence[DomainSlots], size: float) -> "_Names":
        """What fits columns of ``size`` CSS pixels."""
        longest = max((len(node.name) for domain in domains for node in domain.nodes), default=1)
        font = round(min(9.0, size * 0.62), 1)  # upright, a line of text is as wide as a column
        if font < LEGIBLE:
            return cls(False, 8.0, False, 10 / size)
        wide = 0.64 * longest * font
        upright = wide > 0.95 * size
        return cls(True, font, upright, (wide if upright else font) / size + 0.45)

    def marks(self, domain: DomainSlots, left: float, floor: float) -> Iterator[Row]:
        """The names below ``floor``, the first column beginning at ``left``."""
        if self.each:
            for i, node in enumerate(domain.nodes):
                yield {"kind": "name", "x": left + i + 0.5, "y": floor - 0.4, "text": node.name, "colour": QUIET}
        elif domain.nodes:
            ends = " … ".join(dict.fromkeys((domain.nodes[0].name, domain.nodes[-1].name)))
            yield {"kind": "name", "x": left + 0.05, "y": floor - 0.4, "text": ends, "colour": QUIET}

    def mark(self) -> Spec:
        """How a name is drawn: from its place down, upright ones read upwards."""
        turned = {"angle": 270, "align": "right", "baseline": "middle"}
        flat = {"align": "center" if self.each else "left", "baseline": "top"}
        return {"type": "text", "fontSize": self.font, **(turned if self.upright else flat)}


def _domain(domain: DomainSlots, x: float, y: float, colours: Mapping[str, str], names: _Names) -> Iterator[Row]:
    """A domain below and right of (x, y)."""
    floor = y - 1.4 - max((len(n.slots) for n in domain.nodes), default=1)
    for i, node in enumerate(domain.nodes):
        for ordinal, slot in enumerate(node.slots):
            left, bottom = x + i, floor + ordinal
            opacity = PALE if slot.state == "spare" else 1.0
            yield _block(left + 0.07, bottom + 0.07, 0.86, _face(slot, colours), opacity)
            if slot.state == "new":
                yield {"kind": "dot", "x": left + 0.5, "y": bottom + 0.5}
        if not node.usable:
            yield {"kind": "line", "x": x + i + 0.1, "x2": x + i + 0.9, "y": floor - 0.12}
    free = sum(s.state == "free" for n in domain.nodes for s in n.slots)
    total = sum(len(n.slots) for n in domain.nodes)
    yield {"kind": "head", "x": x + 0.05, "y": y - 0.9, "text": domain.name, "colour": INK}
    yield from names.marks(domain, x, floor)
    yield {
        "kind": "text",
        "x": x + 0.05,
        "y": floor - 0.6 - names.blocks,
        "text": f"{free} of {total} free",
        "colour": QUIET,
    }


def _block(x: float, y: float, size: float, colour: str, opacity: float = 1.0) -> Row:
    return {"kind": "block", "x": x, "x2": x + size, "y": y, "y2": y + size, "colour": colour, "opacity": opacity}


def _face(slot: Slot, colours: Mapping[str, str]) -> str:
    return {"free": EMPTY, "foreign": FOREIGN}.get(slot.state) or colours[slot.owner]


def _key(lines: Sequence[tuple[str, Row]], x: float, step: float) -> Iterator[Row]:
    """The legend at ``x``, a line each: what it shows, moved to its line, and its words."""
    yield {"kind": "head", "x": x, "y": -0.9, "text": TITLE, "colour": INK}
    for number, (words, mark) in enumerate(lines, 1):
        y = -0.9 - step * number
        moved: Row = {
            name: mark[name] + (x if name[0] == "x" else y) for name in ("x", "x2", "y", "y2") if name in mark
        }
        yield {**mark, **moved}
        yield {"kind": "text", "x": x + 1.2 * step, "y": y, "text": words, "colour": INK}


def _legend(domains: Sequence[DomainSlots], colours: Mapping[str, str]) -> list[tuple[str, Row]]:
    """Owners, then what is not an owner, each with its GPUs and its mark; only what the picture shows."""
    slots = [s for d in domains for n in d.nodes for s in n.slots]
    owners = Counter(s.owner for s in slots if s.owner)
    states = Counter(s.state for s in slots)
    named = [owner for owner, colour in colours.items() if colour != OTHERS]
    rest = owners.total() - sum(owners[owner] for owner in named)

    def block(colour: str, opacity: float = 1.0) -> Row:
        return _block(0, -0.35, 0.7, colour, opacity)

    found = [(f"{owner}: {owners[owner]}", block(colours[owner])) for owner in named]
    if rest:
        found.append((f"other owners: {rest}", block(OTHERS)))
    if states["spare"]:
        found.append((f"pale: spares, {states['spare']}", block(PALETTE[0], PALE)))
    if states["foreign"]:
        found.append((f"other pods: {states['foreign']}", block(FOREIGN)))
    found.append((f"free: {states['free']}", block(EMPTY)))
    if states["new"]:
        found.append((f"starts now: {states['new']}", {"kind": "dot", "x": 0.35, "y": 0.0}))
    if stopped := sum(not n.usable for d in domains for n in d.nodes):
        found.append(
            (f"takes nothing new: {counted(stopped, 'node')}", {"kind": "line", "x": 0.0, "x2": 0.7, "y": 0.0})
        )
    return found
