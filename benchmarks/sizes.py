"""How large and how long GPU jobs are: the distribution that fleets draw their runs from.

``philly_sizes.csv`` condenses the published Microsoft Philly trace (2017, CC-BY-4.0): per GPU count the number of jobs,
their GPU-hours, and the durations at 21 quantiles, each job weighted by its duration, because a fleet at a random
moment shows long jobs more often than short ones.
"""

import csv
import io
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path

QUANTILES = 20
SOURCE = Path(__file__).parent / "philly_sizes.csv"


@dataclass(frozen=True, slots=True)
class Size:
    """Jobs of one GPU count. ``seconds``: QUANTILES + 1 durations, ascending."""

    gpus: int
    jobs: int
    gpu_hours: int
    seconds: tuple[int, ...]

    def duration(self, u: float) -> int:
        """Seconds at quantile ``u`` in [0, 1), linear between the stored ones."""
        i, rest = divmod(u * QUANTILES, 1)
        low, high = self.seconds[int(i)], self.seconds[int(i) + 1]
        return max(1, int(low + rest * (high - low)))


@dataclass(frozen=True)
class Sizes:
    """All sizes, ascending in GPUs."""

    rows: tuple[Size, ...]

    @cached_property
    def _edges(self) -> list[int]:
        return list(accumulate(row.gpu_hours for row in self.rows))

    def draw(self, u: float, v: float) -> tuple[int, int]:
        """(GPUs, seconds) of a job met at a random GPU at a random moment; ``u``, ``v`` uniform in [0, 1)."""
        row = self.rows[bisect_right(self._edges, u * self._edges[-1])]
        return row.gpus, row.duration(v)


def read(path: Path = SOURCE) -> Sizes:
    """Read a condensed distribution."""
    with path.open(newline="", encoding="utf-8") as file:
        _, *rows = csv.reader(line for line in file if not line.startswith("#"))
    return Sizes(tuple(Size(int(g), int(n), int(h), tuple(map(int, q))) for g, n, h, *q in rows))


def condense(jobs: Iterable[tuple[int, int]]) -> str:
    """CSV text of the distribution of ``(gpus, seconds)`` pairs; this is what made ``philly_sizes.csv``."""
    by_gpus: dict[int, list[int]] = {}
    for gpus, seconds in jobs:
        if gpus > 0 and seconds > 0:
            by_gpus.setdefault(gpus, []).append(seconds)
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["gpus", "jobs", "gpu_hours", *(f"s{5 * i:03d}" for i in range(QUANTILES + 1))])
    for gpus in sorted(by_gpus):
        lengths = sorted(by_gpus[gpus])
        edges = list(accumulate(lengths))
        at = [bisect_right(edges, edges[-1] * i / QUANTILES) for i in range(QUANTILES)]
        quantiles = [*(lengths[i] for i in at), lengths[-1]]
        writer.writerow([gpus, len(lengths), round(gpus * edges[-1] / 3600), *quantiles])
    return out.getvalue()
