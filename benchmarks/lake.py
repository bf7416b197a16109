"""Reports over a long lake: ``python -m benchmarks.lake [--days 100] [--gpus 6000] [--jobs 4000]``.

Makes a lake of compacted days, one cycle a minute, and runs every report over all of it, each in a fresh process;
prints seconds of wall time and CPU, and peak memory. The lake is made once, the same for the same numbers, and kept in
``.cache/benchmarks``.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.fleet.dice import Dice
from benchmarks.load import CACHE
from exporters.lake import days
from exporters.lake.fold import Rows, spans
from exporters.lake.foldtables import FOLD_VERSION, FOLDS, STANDING
from exporters.lake.lake import Lake
from jobtree.api import Time

BEGIN = 1_767_225_600  # 2026-01-01T00:00:00Z
DAY, MINUTE = 86_400, 60
FLAVOR = "H100-80GB"
SIZES = ((1, 40), (2, 10), (4, 10), (8, 25), (16, 8), (32, 4), (64, 2), (128, 1))
"""GPUs of a job, and how often: by jobs most are small, by GPU-hours most are large."""
OWNERS = [f"org:{unit}:{team}" for unit in ("a", "b", "c", "d") for team in "fghijklmno"]
BUSY = 0.9
"""Of the fleet's GPUs, what the jobs ask for: enough for a queue at times."""


@dataclass
class Job:
    """A run. ``seconds``: how long it works once it is started."""

    name: str
    owner: str
    gpus: int
    created: int
    seconds: int
    leases: list[dict[str, Any]] = field(default_factory=list)
    seen: int = 0
    outcome: str | None = None


class Fleet:
    """Nodes of 8 GPUs and what they run, minute by minute: first come, first served, as far as there is room."""

    def __init__(self, gpus: int, jobs: int, seed: str = "lake") -> None:
        self.free = {f"n{number:05d}": list(range(8)) for number in range(gpus // 8)}
        self.places: list[dict[str, None]] = [*({} for _ in range(8)), dict.fromkeys(self.free)]  # by free GPUs
        self.room = gpus
        self.waiting: deque[Job] = deque()
        self.running: dict[int, list[Job]] = {}
        self.dice = Dice(seed)
        self.jobs = jobs
        mean = sum(size * often for size, often in SIZES) / sum(often for _, often in SIZES)
        self.mean = BUSY * gpus * DAY / (jobs * mean)
        self.count = 0

    def minute(self, at: int) -> Iterator[Job]:
        """Moves on to the cycle at ``at``; yields the jobs that changed in it."""
        for second in range(at - MINUTE + 1, at + 1):
            for job in self.running.pop(second, ()):
                self._end(job, second)
                yield job
        for _ in range(self.jobs // 1440 + self.dice.chance(self.jobs % 1440 / 1440)):
            self.count += 1
            size = self.dice.weighted([size for size, _ in SIZES], [often for _, often in SIZES])
            seconds = 60 + self.dice.exponential(self.mean)
            owner = OWNERS[int(self.dice.u() ** 2 * len(OWNERS))]
            job = Job(f"job-{self.count}", owner, size, at - self.dice.between(0, MINUTE), seconds)
            self.waiting.append(job)
            yield job
        while self.waiting and self.waiting[0].gpus <= self.room:
            job = self.waiting.popleft()
            self._start(job, at)
            yield job

    def _start(self, job: Job, at: int) -> None:
        lent = self.dice.chance(0.1)
        payer = self.dice.among(OWNERS) if lent else job.owner
        name = "owned" if payer == job.owner else "shared"
        short = job.seconds > 7200 and self.dice.chance(0.05)
        segments = [{"class": name, "from": at, "to": None, "rate_milli": 2500}]
        if short:
            segments[0]["to"] = at + 3600
            segments.append({"class": "unfunded", "from": at + 3600, "to": None, "rate_milli": 2500})
        left = job.gpus
        while left:
            node = self._node(left)
            taken = self.free[node][: min(left, 8)]
            self.places[len(self.free[node])].pop(node)
            del self.free[node][: len(taken)]
            self.places[len(self.free[node])][node] = None
            left -= len(taken)
            number = len(job.leases)
            job.leases.append(
                {
                    "namespace": "jobs", "name": f"{job.name}-{number}", "run": job.name, "run_uid": job.name,
                    "owner": payer, "run_owner": job.owner, "flavor": FLAVOR, "group": 0, "node": node,
                    "ordinals": taken, "role": "Active", "start": at, "budget": payer.replace(":", "-"),
                    "envelope": "gpus", "reason": "Start", "closed": False, "ended": None, "closure_reason": None,
                    "funding": [dict(segment) for segment in segments],
                }
            )  # fmt: skip
        self.room -= job.gpus
        self.running.setdefault(at + job.seconds, []).append(job)

    def _node(self, gpus: int) -> str:
        """The fullest node with room for it, else the emptiest."""
        fitting = [free for free in range(min(gpus, 8), 9) if self.places[free]]
        return next(iter(self.places[fitting[0] if fitting else max(free for free in range(9) if self.places[free])]))

    def _end(self, job: Job, at: int) -> None:
        for lease in job.leases:
            lease.update(closed=True, ended=at, closure_reason="Completed")
            lease["funding"][-1]["to"] = at
            node = lease["node"]
            self.places[len(self.free[node])].pop(node)
            self.free[node] = sorted([*self.free[node], *lease["ordinals"]])
            self.places[len(self.free[node])][node] = None
        self.room += job.gpus
        job.outcome = "Completed"


def write(root: Path, days_count: int, gpus: int, jobs: int) -> None:
    """Makes the lake."""
    lake, fleet = Lake(root), Fleet(gpus, jobs)
    standing = _standing(gpus)
    alive: dict[str, Job] = {}
    for day in range(days_count):
        begin = BEGIN + day * DAY
        changed: dict[str, Job] = dict(alive)
        waits: list[tuple[int, Rows]] = []
        prices: list[tuple[int, Rows]] = []
        before: tuple[str, ...] = ()
        times = list(range(begin, begin + DAY, MINUTE))
        for at in times:
            for job in fleet.minute(at):
                changed[job.name] = job
                job.seen = at
            queue = tuple(job.name for job in fleet.waiting)
            if queue != before or at == begin:
                waits.append((at, {("jobs", job.name): _wait(job, fleet.room) for job in fleet.waiting}))
                prices.append((at, _prices(fleet.waiting, at)))
                before = queue
        alive = {name: job for name, job in changed.items() if job.outcome is None}
        leases = [_as_seen(lease, times[-1]) for job in changed.values() for lease in job.leases]
        leases.sort(key=lambda lease: lease["name"])
        tables = {
            **{name: spans(FOLDS[name], [(begin, rows)]) for name, rows in standing.items()},
            "cycles": pa.Table.from_pylist([_cycle(at) for at in times], FOLDS["cycles"]),
            "leases": pa.Table.from_pylist(leases, FOLDS["leases"]),
            "runs": pa.Table.from_pylist([_run(job, begin, times[-1]) for job in changed.values()], FOLDS["runs"]),
            "waits": spans(FOLDS["waits"], waits),
            "opening": FOLDS["opening"].empty_table(),
            "discounts": pa.Table.from_pylist([{"milli": 500, "time": times[-1]}], FOLDS["discounts"]),
            "prices": spans(FOLDS["prices"], prices),
        }
        days.store(lake, str(Time(begin))[:10], tables, [])
        print(f"\rday {day + 1} of {days_count}: {len(leases)} leases", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def _as_seen(lease: dict[str, Any], at: int) -> dict[str, Any]:
    """A lease as the cycle at ``at`` saw it: what its ledger will say later is not known yet."""
    first, *rest = lease["funding"]
    known = [first, *(segment for segment in rest if segment["from"] <= at)]
    if len(known) < len(lease["funding"]):
        known[-1] = {**known[-1], "to": None}
    return {**lease, "funding": known, "seen": at}


def _standing(gpus: int) -> dict[str, Rows]:
    nodes = [
        {
            "name": f"n{number:05d}", "region": "west", "cluster": "c1", "domain": f"d{number // 32:02d}",
            "flavor": FLAVOR, "gpus": 8, "unschedulable": False, "ready": True, "out_of_service": False,
        }
        for number in range(gpus // 8)
    ]  # fmt: skip
    names = [owner.replace(":", "-") for owner in OWNERS]
    share = gpus // len(OWNERS)
    envelope = {
        "name": "gpus", "flavor": FLAVOR, "concurrency": share, "scope": "own", "sharing": "family",
        "start": BEGIN, "max_gpu_milliseconds": share * 400 * DAY * 1000,
    }  # fmt: skip
    rows: dict[str, list[dict[str, Any]]] = {
        "nodes": nodes,
        "budgets": [{"name": name, "owner": owner} for name, owner in zip(names, OWNERS, strict=True)],
        "envelopes": [{"budget": name, **envelope} for name in names],
    }
    keyed: dict[str, Rows] = {"aggregates": {}, "use_caps": {}, "quarantine": {}, "foreign": {}}
    for name, found in rows.items():
        empty = dict.fromkeys(FOLDS[name].names[:-2])
        keyed[name] = {tuple(str(row[column]) for column in STANDING[name]): {**empty, **row} for row in found}
    return keyed


def _cycle(at: int) -> dict[str, Any]:
    stamp = str(Time(at)).replace("-", "").replace(":", "")
    digest = hashlib.sha256(stamp.encode()).hexdigest()
    digests = dict.fromkeys(("snapshot", "plan", "leases", "policy"), digest)
    return {"time": at, "cycle": stamp, **digests}


def _run(job: Job, begin: int, last: int) -> dict[str, Any]:
    return {
        "namespace": "jobs", "name": job.name, "uid": job.name, "created": job.created, "owner": job.owner,
        "state": "Active", "flavor": FLAVOR, "total": job.gpus, "group": 0, "opportunistic": False,
        "allow_borrow": False, "outcome": job.outcome, "first_seen": max(begin, job.created), "last_seen": last,
    }  # fmt: skip


def _wait(job: Job, room: int) -> dict[str, Any]:
    return {
        "namespace": "jobs", "name": job.name, "reason": "CapacityShort", "message": f"Asks for {job.gpus} GPUs.",
        "deficit_gpus": job.gpus, "never": False,
        "shorts": [{"rule": "capacity", "subject": FLAVOR, "amount": max(1, job.gpus - room // 64), "unit": "GPU"}],
    }  # fmt: skip


def _prices(waiting: Iterable[Job], at: int) -> Rows:
    """A price of the flavor, and one of the envelope of every owner that waits, by the age of who waits longest."""
    oldest: dict[tuple[str, str], int] = {}
    for job in waiting:
        for key in (("capacity", FLAVOR), ("concurrency", f"{job.owner.replace(':', '-')}/gpus")):
            oldest[key] = max(oldest.get(key, 0), min(at - job.created, 3 * DAY))
    return {
        (rule, subject): {
            "rule": rule, "subject": subject, "unit": "GPU", "centi_value": 100 + 100 * age // DAY, "centi_gpus": 100
        }
        for (rule, subject), age in oldest.items()
    }  # fmt: skip


def measure(root: Path, report: str) -> dict[str, float]:
    """A report as an operator runs it: wall and CPU seconds, peak MB."""
    argv = [sys.executable, "-c", "import sys; from jobtree.cli.operator import main; sys.exit(main())"]
    argv += ["report", report, "--lake", str(root), "-o", "html"]
    if report == "focus":
        argv += ["--set", "currency=USD", "--set", "credit_price=1"]
    began = time.perf_counter()
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"jobtree report {report} ended with exit code {process.returncode}")
    wall = time.perf_counter() - began
    return {"wall": round(wall, 2), "cpu": round(used.ru_utime + used.ru_stime, 2), "peak_mb": used.ru_maxrss // 1024}


def main() -> None:
    """The command."""
    from reports.read.definition import names

    parser = argparse.ArgumentParser(prog="python -m benchmarks.lake", description=__doc__)
    parser.add_argument("--days", type=int, default=100)
    parser.add_argument("--gpus", type=int, default=6000)
    parser.add_argument("--jobs", type=int, default=4000, help="jobs a day (default: %(default)s)")
    parser.add_argument("reports", nargs="*", metavar="REPORT", help="these only (default: all)")
    given = parser.parse_args()
    root = CACHE / f"lake-{given.days}-{given.gpus}-{given.jobs}-{FOLD_VERSION}"
    if not root.exists():
        part = root.with_suffix(f".{os.getpid()}.part")
        write(part, given.days, given.gpus, given.jobs)
        part.rename(root)
    size = sum(file.stat().st_size for file in root.rglob("*.parquet"))
    print(f"{root.name}: {given.days * 1440:,} cycles, {size / 1e6:.0f} MB")
    for report in given.reports or names():
        print(f"{report:12} {json.dumps(measure(root, report))}", flush=True)


if __name__ == "__main__":
    main()
