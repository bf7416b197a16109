"""What a scheduler did, as tables, and its key figures as pandas frames.

    wait        seconds from submission to the first start; of who still waits, until the end
    slowdown    bounded [1]: (end − submission) over its true seconds, these being 600 at least; 1 at best
    useful      GPU-seconds of work of jobs that completed, and of what others had kept: what was lost counts nothing

[1] D. Feitelson et al., Theory and practice in parallel job scheduling, 1997.
"""

import io
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from jobtree.api.values.counted import counted
from jobtree.api.values.scalars import HOUR
from reports.output import Pictures, as_pictures
from reports.read.definition import Chart
from reports.told.charts import EACH, Picture, picture
from simulator.loop import Progress, Tick
from simulator.stream import Stream

BOUND: Final = 600
"""Seconds that a job counts as at least, so that one of a second does not decide a mean."""
SIZES: Final = ((1, "1"), (4, "2-4"), (8, "5-8"), (32, "9-32"), (1 << 30, "33+"))
"""Upper ends of classes of GPUs, and what they are called."""
POINTS: Final = 400
"""Turns that a picture shows."""

_STUDY: Final = b"jobtree.study"
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
    """Tables of one scheduler: a row per job, in the order of submission, and per turn. Times are Unix seconds;
    ``end``: of the stream, or of its last job.
    """

    scheduler: str
    jobs: pa.Table
    turns: pa.Table
    end: int


def outcome(scheduler: str, stream: Stream, progress: Progress) -> Outcome:
    """Make tables of what the loop found."""
    last = max((fate.ended or 0 for fate in progress.fates.values()), default=stream.start)
    end = stream.end if stream.end is not None else last
    rows = []
    for name, fate in progress.fates.items():
        namespace, _, own = name.partition("/")
        job = stream.jobs[namespace, own]
        open_ = fate.width * max(0, end - fate.since)
        served = 0.0 if fate.down else max(0.0, min(fate.left, open_ / job.gpus))
        rows.append((
            namespace, own, job.owner, job.gpus, fate.at, job.seconds, job.manifest is None, fate.first,
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


def parquet(table: pa.Table, made_from: str) -> bytes:
    """A table as the lake has it: the same rows give the same bytes. ``made_from``: the digest of its study."""
    sink = io.BytesIO()
    pq.write_table(table.replace_schema_metadata({_STUDY: made_from}), sink, compression="zstd")
    return sink.getvalue()


def made_from(data: bytes) -> str:
    """The digest of the study that a table of the lake is of; empty where it does not say."""
    try:
        told = pq.read_schema(io.BytesIO(data)).metadata or {}
    except pa.ArrowException:
        return ""
    return str(told.get(_STUDY, b""), "ascii")


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
        "wait_hours": groups["wait"].mean() / HOUR,
        "p90_wait_hours": groups["wait"].quantile(0.9) / HOUR,
        "slowdown": groups["slowdown"].mean(),
    })  # fmt: skip


def figures(found: Outcome) -> dict[str, float | None]:
    """Key figures of one scheduler: hours and shares; ``eta_p90``: the share that started by the first p90 told.

    ``mean_gap``: over its plans, of the stage with the largest; one without end, as its bound is 0, counts as 1.
    """
    frame, turns = jobs_frame(found), found.turns.to_pandas()
    spans = turns["at"].shift(-1).fillna(found.end) - turns["at"]
    there = float((turns["gpus"] * spans).sum())
    told = calibration(found)
    done = found.jobs["done_gpu_seconds"].to_pandas().sum()
    begun = float(turns["at"].iloc[0]) if len(turns) else float(found.end)
    return {
        "jobs": float(len(frame)),
        "completed": float((frame["outcome"] == "Completed").sum()),
        "waiting": float((frame["outcome"] == "Waiting").sum()),
        "span_hours": (found.end - begun) / HOUR,
        "utilisation": float((turns["used_gpus"] * spans).sum()) / there if there else 0.0,
        "useful": float(done) / there if there else 0.0,
        "wait_hours": float(frame["wait"].mean()) / HOUR if len(frame) else 0.0,
        "p90_wait_hours": float(frame["wait"].quantile(0.9)) / HOUR if len(frame) else 0.0,
        "slowdown": float(frame["slowdown"].mean()) if frame["slowdown"].notna().any() else 1.0,
        "cuts": float(found.jobs["cuts"].to_pandas().sum()),
        "lost_gpu_hours": float(found.jobs["lost_gpu_seconds"].to_pandas().sum()) / HOUR,
        "overdraft_gpu_hours": float((turns["overdraft_gpus"] * spans).sum()) / HOUR,
        "mean_gap": float(turns["gap"].clip(upper=1.0).mean()) if len(turns) else 0.0,
        "eta_p90": None if told is None else told[2],
    }


def comparison(found: list[Outcome]) -> pd.DataFrame:
    """A row of key figures per scheduler."""
    return pd.DataFrame([figures(each) for each in found], index=[each.scheduler for each in found])


def _cells(row: "pd.Series[Any]") -> list[str]:
    return [form(row[name]) for name, form in COLUMNS.values()]


def span(hours: float) -> str:
    """Hours, and less than one in minutes, less than ten of these in seconds."""
    seconds = hours * HOUR
    return f"{hours:,.2f} h" if hours >= 1 else f"{seconds / 60:.0f} min" if seconds >= 600 else f"{seconds:.0f} s"


def _share(part: float) -> str:
    return f"{part:.1%}"


def _count(number: float) -> str:
    return f"{number:,.0f}"


COLUMNS: Final[dict[str, tuple[str, Callable[[float], str]]]] = {
    "completed": ("completed", _count), "waiting": ("waiting", _count), "span": ("span_hours", span),
    "used": ("utilisation", _share), "useful": ("useful", _share), "wait": ("wait_hours", span),
    "p90": ("p90_wait_hours", span), "slowdown": ("slowdown", "{:,.2f}".format), "cuts": ("cuts", _count),
    "lost": ("lost_gpu_hours", "{:,.1f} GPUh".format), "overdraft": ("overdraft_gpu_hours", _count),
}  # fmt: skip
"""What people are shown of `figures`, and how."""


def rows(found: list[Outcome]) -> list[tuple[str, ...]]:
    """A line per scheduler: its name, then `COLUMNS`."""
    return [(str(name), *_cells(row)) for name, row in comparison(found).iterrows()]


def page(name: str, found: list[Outcome]) -> str:
    """The page of a study: the key figures, and pictures of what lies behind them."""
    frames = {each.scheduler: jobs_frame(each) for each in found}
    sizes, owners = (_bars(frames, column, "wait_hours") for column in ("size", "owner"))
    slow = _bars(frames, "size", "slowdown")
    cuts = [{"label": each.scheduler, "y": figures(each)["cuts"], "series": each.scheduler} for each in found]
    drawn = (
        ("lines", "GPUs that work, % of those that are there", [row for each in found for row in _use(each)]),
        ("each", "Mean wait in hours, by GPUs of a job", sorted(sizes, key=_size)),
        ("each", "Bounded slowdown, by GPUs of a job", sorted(slow, key=_size)),
        (
            "each",
            "Mean wait in hours of who waits longest, by owner",
            _longest(owners, len(found)),
        ),
        ("across", "Stops of jobs that wait again", cuts),
        (
            "lines",
            "Gap of Jobtree's plans, %",
            [row for each in found if each.scheduler == "jobtree" for row in _gap(each)],
        ),
    )
    pictures = [each for kind, title, data in drawn if (each := _drawn(kind, title, data)) is not None]
    best = min(found, key=lambda each: figures(each)["wait_hours"] or 0.0)
    jobs = counted(len(frames[best.scheduler]), "job")
    lead = f"{counted(len(found), 'scheduler')} on the same {jobs}: least mean wait under {best.scheduler}."
    columns = ("scheduler", *COLUMNS)
    return as_pictures(Pictures(f"Simulation of {name}", lead, columns, rows(found), pictures, [*_notes(found)]))


def _bars(frames: dict[str, pd.DataFrame], column: str, figure: str) -> list[dict[str, Any]]:
    """A figure of `waits_by` for each value of a column under each scheduler, where there is one."""
    return [
        {"label": f"{key}, {scheduler}", "y": row[figure], "series": scheduler}
        for scheduler, frame in frames.items()
        for key, row in waits_by(frame, column).iterrows() if row[figure] == row[figure]
    ]  # fmt: skip


def _size(row: dict[str, Any]) -> int:
    """Sizes in their order, and schedulers as they come."""
    return [name for _, name in SIZES].index(row["label"].partition(",")[0])


def _longest(data: list[dict[str, Any]], schedulers: int) -> list[dict[str, Any]]:
    """Owners by the longest wait under any scheduler, as many as a chart has room for, and schedulers as they come."""
    longest: dict[str, float] = {}
    for row in data:
        owner = row["label"].partition(",")[0]
        longest[owner] = max(longest.get(owner, 0.0), row["y"])
    shown = sorted(longest, key=lambda owner: -longest[owner])[: max(1, EACH // schedulers)]
    rows = [row for row in data if row["label"].partition(",")[0] in shown]
    return sorted(rows, key=lambda row: shown.index(row["label"].partition(",")[0]))


def _notes(found: list[Outcome]) -> Iterator[str]:
    for each in found:
        told = calibration(each)
        if told is not None:
            yield (
                f"Dates of {each.scheduler}: of {counted(told[0], 'job')} that were told one and have started, "
                f"{told[1]:.0%} had by their first p50 and {told[2]:.0%} by their first p90."
            )
        charged = figures(each)["overdraft_gpu_hours"]
        yield f"Charged beyond an envelope's concurrency by {each.scheduler}: {charged:,.0f} GPU-hours."


def calibration(found: Outcome) -> tuple[int, float, float] | None:
    """Jobs that were told a date before they started, and the shares of them that started by p50 and p90."""
    frame = jobs_frame(found)
    told = frame[frame["told_at"].notna() & frame["started"].notna()]
    if not len(told):
        return None
    return len(told), float((told["started"] <= told["p50"]).mean()), float((told["started"] <= told["p90"]).mean())


def _use(found: Outcome) -> list[dict[str, Any]]:
    turns = _fewer(found.turns.to_pylist())
    shares = [100.0 * row["used_gpus"] / max(1, row["gpus"]) for row in turns]
    return [
        {"panel": found.scheduler, "x": _time(row["at"]), "y": share, "bound": 100.0}
        for row, share in zip(turns, shares, strict=True)
    ]


def _gap(found: Outcome) -> list[dict[str, Any]]:
    turns = _fewer(found.turns.to_pylist())
    return [{"panel": "jobtree", "x": _time(row["at"]), "y": 100.0 * min(row["gap"], 1.0)} for row in turns]


def _fewer(turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Take at most `POINTS` of them, evenly."""
    return turns[:: max(1, -(-len(turns) // POINTS))]


def _time(at: int) -> datetime:
    return datetime.fromtimestamp(at, UTC)


def _drawn(kind: str, title: str, data: list[dict[str, Any]]) -> Picture | None:
    return picture(Chart(kind, title, ""), pa.Table.from_pylist(data)) if data else None
