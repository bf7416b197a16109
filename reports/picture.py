"""A picture of the fleet: a block per GPU, domains side by side, coloured by who holds it."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PatchCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

from jobtree.api.escaped import escaped
from reports.slots import DomainSlots, Slot

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
LEGIBLE: Final = 4.5
"""Points below which nobody reads a name."""
MANY: Final = 20_000
"""Blocks beyond which an SVG holds them as pixels."""


def draw_fleet(domains: Sequence[DomainSlots], paths: Sequence[Path], *, title: str) -> None:
    """Draw the fleet into ``paths`` (``.svg``, ``.png``); the same fleet gives the same bytes.

    A node is a column of blocks, ordinal 0 at the bottom, its name below; where there is no room for names to be read,
    the domain's nodes are named by their first and last. Owners are coloured, most GPUs first, as far as there are
    colours; the rest share a grey. A run that the plan starts has a dot on each of its blocks.
    """
    rows = _rows(domains)
    colours = _colours(domains)
    width = max((sum(_width(d) for d in row) for row in rows), default=10)
    scale = min(0.26, max(0.09, 11.0 / width))  # inches a block
    names = _Names.fitting(domains, scale)
    height = sum(_row_height(row) + names.blocks for row in rows) or 1.0
    legend = _handles(domains, colours)
    wide = width * scale + 3.2  # inches, 3.2 of them for the legend
    high = max(height * scale, 0.19 * len(legend) + 0.5) + 0.5
    with mpl.rc_context({"svg.hashsalt": "jobtree", "font.family": "DejaVu Sans", "text.color": INK, "font.size": 8}):
        figure = Figure(figsize=(wide, high))
        FigureCanvasAgg(figure)
        right, tall = width * scale / wide, height * scale / high
        axes = figure.add_axes((0, 1 - 0.45 / high - tall, right, tall))
        axes.set(xlim=(-0.2, width - 0.2), ylim=(-height, 0))
        axes.axis("off")
        y = 0.0
        for row in rows:
            x = 0.0
            for domain in row:
                _draw_domain(axes, domain, (x, y), colours, names, font=8 * min(1.0, scale / 0.12))
                x += _width(domain)
            y -= _row_height(row) + names.blocks
        figure.text(
            0.2 * scale / wide,
            1 - 0.1 / high,
            escaped(title),
            parse_math=False,
            va="top",
            fontsize=12,
            fontweight="bold",
        )
        figure.legend(
            handles=legend,
            loc="upper left",
            bbox_to_anchor=(right, 1 - 0.4 / high),
            frameon=False,
            title="GPUs by owner of the run",
            title_fontproperties={"weight": "bold", "size": 8},
            alignment="left",
        )
        for path in paths:
            metadata = {"Date": None} if path.suffix == ".svg" else {"Software": None}
            figure.savefig(path, dpi=140, metadata=metadata, facecolor="white", bbox_inches="tight", pad_inches=0.15)


@dataclass(frozen=True)
class _Names:
    """How nodes are named below their columns: at ``font`` points, upright or not, on ``blocks`` of height.

    Without ``each`` only the first and last of a domain are, in one line.
    """

    each: bool
    font: float
    upright: bool
    blocks: float

    @classmethod
    def fitting(cls, domains: Sequence[DomainSlots], scale: float) -> "_Names":
        """What fits columns of ``scale`` inches."""
        longest = max((len(node.name) for domain in domains for node in domain.nodes), default=1)
        font = min(6.5, 72 * scale * 0.62)  # points: upright, a line of text is as wide as a column
        if font < LEGIBLE:
            return cls(False, LEGIBLE, False, 1.0)
        inches = 0.62 * longest * font / 72
        upright = inches > 0.95 * scale
        return cls(True, font, upright, (inches / scale if upright else font / 72 / scale) + 0.3)

    def draw(self, axes: "Axes", domain: DomainSlots, left: float, floor: float) -> None:
        """Writes them below ``floor``, the first column beginning at ``left``."""
        if self.each:
            for i, node in enumerate(domain.nodes):
                turn = 90 if self.upright else 0
                place = (left + i + 0.5, floor - 0.25)
                axes.text(
                    *place,
                    escaped(node.name),
                    parse_math=False,
                    fontsize=self.font,
                    color=QUIET,
                    va="top",
                    ha="center",
                    rotation=turn,
                )
        elif domain.nodes:
            ends = dict.fromkeys((domain.nodes[0].name, domain.nodes[-1].name))
            axes.text(
                left + 0.05,
                floor - 0.25,
                escaped(" … ".join(ends)),
                parse_math=False,
                fontsize=self.font,
                color=QUIET,
                va="top",
            )


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


def _draw_domain(
    axes: "Axes",
    domain: DomainSlots,
    corner: tuple[float, float],
    colours: dict[str, str],
    names: _Names,
    *,
    font: float,
) -> None:
    """Draw a domain below and right of ``corner``, in blocks."""
    x, y = corner
    top = max((len(n.slots) for n in domain.nodes), default=1)
    floor = y - 1.4 - top
    blocks, faces = [], []
    dots: list[tuple[float, float]] = []
    for i, node in enumerate(domain.nodes):
        for ordinal, slot in enumerate(node.slots):
            left, bottom = x + i, floor + ordinal
            blocks.append(Rectangle((left + 0.07, bottom + 0.07), 0.86, 0.86))
            faces.append(_face(slot, colours))
            if slot.state == "new":
                dots.append((left + 0.5, bottom + 0.5))
        if not node.usable:
            axes.plot([x + i + 0.1, x + i + 0.9], [floor - 0.12] * 2, color=STOPPED, linewidth=2)
    axes.add_collection(
        PatchCollection(blocks, facecolors=faces, edgecolors=LINE, linewidths=0.4, rasterized=len(blocks) > MANY)
    )
    axes.scatter(
        [x for x, _ in dots], [y for _, y in dots], s=font, color="white", edgecolors=INK, linewidths=0.6, zorder=3
    )
    free = sum(s.state == "free" for n in domain.nodes for s in n.slots)
    total = sum(len(n.slots) for n in domain.nodes)
    axes.text(x + 0.05, y - 1.2, escaped(domain.name), parse_math=False, fontsize=font, fontweight="bold", va="bottom")
    names.draw(axes, domain, x, floor)
    axes.text(
        x + 0.05, floor - 0.25 - names.blocks, f"{free} of {total} free", fontsize=0.85 * font, color=QUIET, va="top"
    )


def _face(slot: Slot, colours: dict[str, str]) -> tuple[float, float, float, float]:
    plain = {"free": EMPTY, "foreign": FOREIGN}.get(slot.state) or colours[slot.owner]
    red, green, blue, alpha = mpl.colors.to_rgba(plain)
    return red, green, blue, PALE if slot.state == "spare" else alpha


def _handles(domains: Sequence[DomainSlots], colours: dict[str, str]) -> list[Artist]:
    """The legend: owners, then what is not an owner, each with its GPUs; only what the picture shows."""
    slots = [s for d in domains for n in d.nodes for s in n.slots]
    owners = Counter(s.owner for s in slots if s.owner)
    states = Counter(s.state for s in slots)
    named = [owner for owner, colour in colours.items() if colour != OTHERS]
    rest = owners.total() - sum(owners[owner] for owner in named)
    handles: list[Artist] = [Patch(facecolor=colours[o], label=escaped(f"{o}: {owners[o]}")) for o in named]
    if rest:
        handles.append(Patch(facecolor=OTHERS, label=f"other owners: {rest}"))
    if states["spare"]:
        handles.append(Patch(facecolor=mpl.colors.to_rgba(PALETTE[0], PALE), label=f"pale: spares, {states['spare']}"))
    if states["foreign"]:
        handles.append(Patch(facecolor=FOREIGN, label=f"other pods: {states['foreign']}"))
    handles.append(Patch(facecolor=EMPTY, edgecolor=LINE, label=f"free: {states['free']}"))
    if states["new"]:
        handles.append(
            Line2D(
                [],
                [],
                marker="o",
                markersize=4,
                color="white",
                markeredgecolor=INK,
                linestyle="",
                label=f"starts now: {states['new']}",
            )
        )
    if stopped := sum(not n.usable for d in domains for n in d.nodes):
        handles.append(Line2D([], [], color=STOPPED, linewidth=2, label=f"takes nothing new: {stopped} nodes"))
    return handles
