"""What a scheduler did, as tables, and its key figures as pandas frames.

    wait        seconds from submission to the first start; of who still waits, until the end
    slowdown    bounded [1]: (end − submission) over its true seconds, these being 600 at least; 1 at best
    useful      GPU-seconds of work of jobs that completed, and of what others had kept: what was lost counts nothing

[1] D. Feitelson et al., Theory and practice in parallel job scheduling, 1997.
"""

import io
from typing import Any, Final, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from simulator.loop import Progress, Tick
from simulator.stream import Stream

BOUND: Final = 600
"""Seconds that a job counts as at least, so that one of a second does not decide a mean."""
SIZES: Final = ((1, "1"), (4, "2-4"), (8, "5-8"), (32, "9-32"), (1 << 30, "33+"))
"""Upper ends of classes of GPUs, and what they are called."""

_JOBS: Final = pa.schema([
    ("namespace", pa.string()), ("name", pa.string()), ("owner", pa.string()), ("gpus", pa.int64()),
    ("submitted", pa.int64()), ("seconds", pa.int64()), ("in_base", pa.bool_()), ("started", pa.int64()),
    ("ended", pa.int64()), ("outcome", pa.string()), ("reason", pa.string()), ("starts", pa.int64()),
    ("cuts", pa.int64()), ("held_gpu_seconds", pa.int64()), ("lost_gpu_seconds", pa.int64()),
    ("done_gpu_seconds", pa.int64()), ("told_at", pa.int64()), ("p50", pa.int64()), ("p90", pa.int64()),
])  # fmt: skip
_TURNS: Final = pa.schema([
    ("at", pa.int64()), ("used_gpus", pa.int64()), ("gpus", pa.int64()), ("running", pa.int64()),
    ("waiting", pa.int64()), ("waiting_gpus", pa.int64()), ("started", pa.int64()), ("cut", pa.int64()),
    ("gap", pa.float64()), ("overdraft_gpus", pa.int64()),
])  # fmt: skip


class Outcome(NamedTuple):
    """Of one scheduler: a row per job, in the order of submission, and per turn. Times are Unix seconds; ``end``: of
    the stream, or of its last job.
    """

    scheduler: str
    jobs: pa.Table
    turns: pa.Table
    end: int


def outcome(scheduler: str, stream: Stream, progress: Progress) -> Outcome:
    """What the loop found, as tables."""
    last = max((fate.ended or 0 for fate in progress.fates.values()), default=stream.start)
    end = stream.end if stream.end is not None else last
    rows = []
    for name, fate in progress.fates.items():
        namespace, _, own = name.partition("/")
        job = stream.jobs[namespace, own]
        open_ = fate.width * max(0, end - fate.since)
        served = 0.0 if fate.down else max(0.0, min(fate.left, open_ / job.gpus))
        rows.append((
            namespace, own, job.run.spec.owner, job.gpus, fate.at, job.seconds, job.manifest is None, fate.first,
            fate.ended, fate.outcome, fate.why, fate.starts, fate.cuts, fate.held + open_, fate.lost,
            round((fate.todo - fate.left + served) * job.gpus), fate.told, fate.p50, fate.p90,
        ))  # fmt: skip
    return Outcome(scheduler, _table(rows, _JOBS), _table(progress.ticks, _TURNS), end)


def _table(rows: "list[Any] | list[Tick]", schema: pa.Schema) -> pa.Table:
    plain = [
        tuple(getattr(row, name) for name in row.__struct_fields__) if isinstance(row, Tick) else row for row in rows
    ]
    columns = list(zip(*plain, strict=True)) or [()] * len(schema)
    return pa.table([pa.array(column, kind.type) for column, kind in zip(columns, schema, strict=True)], schema=schema)


def parquet(table: pa.Table) -> bytes:
    """A table as the lake has it: the same rows give the same bytes."""
    sink = io.BytesIO()
    pq.write_table(table, sink, compression="zstd")
    return sink.getvalue()


def jobs_frame(found: Outcome) -> pd.DataFrame:
    """A row per job that was submitted, with its wait, slowdown (None while it is not at its end) and class of size."""
    frame: pd.DataFrame = found.jobs.to_pandas()
    frame = frame[~frame["in_base"]].copy()
    frame["wait"] = frame["started"].fillna(found.end) - frame["submitted"]
    spent = frame["ended"] - frame["submitted"]
    completed = frame["outcome"] == "Completed"
    frame["slowdown"] = (spent / frame["seconds"].clip(lower=BOUND)).clip(lower=1.0).where(completed)
    edges = [0, *(edge for edge, _ in SIZES)]
    frame["size"] = pd.cut(frame["gpus"], edges, labels=[name for _, name in SIZES])
    return frame


def waits_by(frame: pd.DataFrame, column: str) -> pd.DataFrame:
    """Jobs, mean and 90th percentile of waits in hours, and mean slowdown, by ``size`` or ``owner``."""
    groups = frame.groupby(column, observed=True)
    return pd.DataFrame({
        "jobs": groups["wait"].count(),
        "wait_hours": groups["wait"].mean() / 3600,
        "p90_wait_hours": groups["wait"].quantile(0.9) / 3600,
        "slowdown": groups["slowdown"].mean(),
    })  # fmt: skip


def figures(found: Outcome) -> dict[str, float | None]:
    """Key figures of one scheduler: hours and shares; ``eta_p90``: the share that started by the first p90 told."""
    frame, turns = jobs_frame(found), found.turns.to_pandas()
    spans = turns["at"].shift(-1).fillna(found.end) - turns["at"]
    there = float((turns["gpus"] * spans).sum())
    told = frame[frame["told_at"].notna() & frame["started"].notna()]
    done = found.jobs["done_gpu_seconds"].to_pandas().sum()
    begun = float(turns["at"].iloc[0]) if len(turns) else float(found.end)
    return {
        "jobs": float(len(frame)),
        "completed": float((frame["outcome"] == "Completed").sum()),
        "waiting": float((frame["outcome"] == "Waiting").sum()),
        "span_hours": (found.end - begun) / 3600,
        "utilisation": float((turns["used_gpus"] * spans).sum()) / there if there else 0.0,
        "useful": float(done) / there if there else 0.0,
        "wait_hours": float(frame["wait"].mean()) / 3600 if len(frame) else 0.0,
        "p90_wait_hours": float(frame["wait"].quantile(0.9)) / 3600 if len(frame) else 0.0,
        "slowdown": float(frame["slowdown"].mean()) if frame["slowdown"].notna().any() else 1.0,
        "cuts": float(found.jobs["cuts"].to_pandas().sum()),
        "lost_gpu_hours": float(found.jobs["lost_gpu_seconds"].to_pandas().sum()) / 3600,
        "overdraft_gpu_hours": float((turns["overdraft_gpus"] * spans).sum()) / 3600,
        "mean_gap": float(turns["gap"].mean()) if len(turns) else 0.0,
        "eta_p90": float((told["started"] <= told["p90"]).mean()) if len(told) else None,
    }


def comparison(found: list[Outcome]) -> pd.DataFrame:
    """A row of key figures per scheduler."""
    return pd.DataFrame([figures(each) for each in found], index=[each.scheduler for each in found])
