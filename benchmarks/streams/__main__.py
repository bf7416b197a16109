"""Small random streams under Jobtree and its rivals: who waits how long, by size.

    python -m benchmarks.streams [--streams 10] [--first 0] [--scheduler NAME ...]

Four nodes of 8 GPUs in two domains, three owners who share 32 GPUs, and 20 to 60 jobs in about six hours, more than the
fleet can do in these. Estimates are wrong by a factor (log-normal, sigma 0.4), limits are rounded up as people do.
"""

import argparse
import json
import math
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from tempfile import TemporaryDirectory
from typing import Any, Final

import pandas as pd

from benchmarks.streams import kueue
from exporters.lake.lake import Lake
from jobtree.api import API_VERSION, Time
from simulator import results, study
from simulator.stream import Stream, read

BEGIN: Final = int(Time.parse("2026-01-05T00:00:00Z"))
HOURS: Final = 6
NODES, GPUS, DOMAINS = 4, 8, 2
QUOTAS: Final = {"a": 12, "b": 12, "c": 8}
SIZES: Final = ((1, 30), (2, 20), (4, 20), (8, 15), (16, 10), (24, 5))
"""GPUs of a job, and how often."""
LIMITS: Final = (1, 4, 12, 24, 48)
"""Hours that people state as a limit."""
EVERY: Final = 300
"""Seconds between two turns at the least."""
LOAD: Final = 1.3
"""GPU-hours submitted, over those of the fleet until the last is."""


def stream(seed: int) -> Stream:
    """A stream until all is done; the same for the same seed."""
    rng = random.Random(f"streams/{seed}")
    jobs = [_job(rng) for _ in range(rng.randint(20, 60))]
    scale = LOAD * NODES * GPUS * HOURS * 3600 / sum(gpus * seconds for gpus, seconds in jobs)
    times = sorted(rng.random() * HOURS * 3600 for _ in jobs)
    lines = [{"event": "header", "format": "jobtree-stream/1", "start": str(Time(BEGIN))}]
    for number, (at, (gpus, seconds)) in enumerate(zip(times, jobs, strict=True)):
        lasts = max(60, round(seconds * scale))
        lines.append(_submission(rng, f"j{number:02}", BEGIN + int(at), gpus, lasts))
    text = b"\n".join(json.dumps(line).encode() for line in lines)
    return read(f"random-{seed}", text, json.dumps(_base()).encode())


def _job(rng: random.Random) -> tuple[int, float]:
    sizes, weights = zip(*SIZES, strict=True)
    return rng.choices(sizes, weights)[0], min(12 * 3600.0, max(120.0, 1800 * math.exp(rng.gauss(0, 1.2))))


def _submission(rng: random.Random, name: str, at: int, gpus: int, seconds: int) -> dict[str, Any]:
    expected = max(60, round(seconds * math.exp(rng.gauss(0, 0.4))))
    limit = next((hours for hours in LIMITS if hours * 3600 >= 1.25 * max(seconds, expected)), LIMITS[-1])
    spec = {
        "owner": f"org:{rng.choice(sorted(QUOTAS))}",
        "resources": {"gpuType": "GPU", "totalGPUs": gpus},
        "locality": {"groupGPUs": min(gpus, GPUS)},
        "runtime": {"expected": f"{expected}s", "timeLimit": f"{limit}h", "checkpoint": "15m"},
    }
    run = {"apiVersion": API_VERSION, "kind": "Run", "metadata": {"name": name, "namespace": "default"}, "spec": spec}
    return {"at": str(Time(at)), "event": "submit", "run": run, "duration": seconds}


def _base() -> dict[str, Any]:
    nodes = [kueue.node(f"n{number}", f"d{number % DOMAINS}", GPUS) for number in range(NODES)]
    budgets = [kueue.budget(name, "org", name, "default", gpus) for name, gpus in QUOTAS.items()]
    return {"apiVersion": "v1", "kind": "List", "items": [*nodes, *budgets]}


def compare(streams: Iterable[int], schedulers: Sequence[str]) -> pd.DataFrame:
    """A row per stream and scheduler: hours of waits, of those from 8 GPUs on too, slowdown, and share of use."""
    return pd.DataFrame([row for seed in streams for row in _rows(seed, schedulers)])


def _rows(seed: int, schedulers: Sequence[str]) -> Iterator[dict[str, Any]]:
    for scheduler in schedulers:
        with TemporaryDirectory() as folder:
            found = study.study(stream(seed), scheduler, Lake(folder, "random"), EVERY)
        key, frame = results.figures(found), results.jobs_frame(found)
        row = {
            "stream": seed,
            "scheduler": scheduler,
            "jobs": len(frame),
            "wait": key["wait_hours"],
            "p90": key["p90_wait_hours"],
            "gangs": frame[frame["gpus"] >= GPUS]["wait"].mean() / 3600,
            "slowdown": key["slowdown"],
            "useful": key["useful"],
            "lost": key["lost_gpu_hours"],
        }
        print(*(f"{each:.2f}" if isinstance(each, float) else each for each in row.values()), file=sys.stderr)
        yield row


def main() -> None:
    """Entry point: prints the means over all streams, and in how many of them each scheduler waits least."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.streams")
    parser.add_argument("--streams", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="number of the first stream")
    parser.add_argument("--scheduler", dest="schedulers", action="append", choices=study.SCHEDULERS)
    given = parser.parse_args()
    found = compare(range(given.first, given.first + given.streams), given.schedulers or study.SCHEDULERS)
    means = found.groupby("scheduler", sort=False).mean(numeric_only=True).drop(columns="stream")
    best = found.loc[found.groupby("stream")["wait"].idxmin(), "scheduler"].value_counts()
    print(means.assign(best=best).fillna({"best": 0}).round(2).to_string())


if __name__ == "__main__":
    main()
