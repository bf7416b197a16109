"""A study is repeatable, goes on after a kill, and sees nodes fail as a cluster does."""

import gc
import math
import re
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from exporters.lake.lake import Lake
from jobtree.api import Refusal
from planner.dates.dating import Dating
from simulator import results, study
from simulator.results import Outcome
from simulator.stream import Stream
from tests.simulate import streams
from tests.support.commands import jobtree

FEW = streams.made([streams.submit(job) for job in streams.TWENTY[:4]])


class Killed(BaseException):
    """The process ends here."""


def parquets(folder: Path) -> dict[str, bytes]:
    """The lake's Parquet files."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*.parquet"))}


def simulated(stream: Stream, folder: Path, scheduler: str = "jobtree") -> Outcome:
    return study.study(stream, scheduler, Lake(folder, "hand"), 60)


@pytest.mark.slow
def test_the_same_stream_gives_the_same_bytes(tmp_path: Path) -> None:
    found = simulated(FEW, tmp_path / "one")
    simulated(FEW, tmp_path / "two")

    assert streams.times(found) == {"j01": (0, 60), "j02": (0, 90), "j03": (60, 120), "j04": (6, 26)}
    assert results.figures(found)["overdraft_gpu_hours"] == 0
    assert parquets(tmp_path / "one") == parquets(tmp_path / "two") != {}


@pytest.mark.slow
@pytest.mark.parametrize("last", [1, 3, 6])
def test_a_killed_run_goes_on_to_the_same_bytes(last: int, tmp_path: Path) -> None:
    whole = simulated(FEW, tmp_path / "whole")
    turns = list[int]()

    def kill(at: int) -> None:
        turns.append(at)
        if len(turns) == last:
            raise Killed

    lake = Lake(tmp_path / "killed", "hand")
    with pytest.raises(Killed):
        study.study(FEW, "jobtree", lake, 60, saved=2, on_turn=kill)
    found = study.study(FEW, "jobtree", lake, 60, saved=2, resume=True)

    assert found == whole
    assert parquets(tmp_path / "killed") == parquets(tmp_path / "whole")


@pytest.mark.parametrize("cycles", [True, False])
def test_a_lake_with_a_simulation_is_not_begun_anew(cycles: bool, tmp_path: Path) -> None:
    lake = Lake(tmp_path, "hand")
    study.study(FEW, "jobtree", lake, 60, cycles=cycles)
    before = parquets(tmp_path)

    with pytest.raises(Refusal, match="it has a simulation already; name another --lake, or say --resume"):
        study.study(FEW, "jobtree", lake, 60, cycles=cycles)
    assert parquets(tmp_path) == before != {}


def test_a_lake_with_the_cycles_of_a_cluster_takes_no_simulation(tmp_path: Path) -> None:
    simulated(FEW, tmp_path)
    shutil.rmtree(tmp_path / "simulation")

    with pytest.raises(Refusal, match="it has cycles already; name another --lake"):
        study.study(FEW, "jobtree", Lake(tmp_path, "hand"), 60, resume=True)


def test_results_of_another_study_are_not_lost(tmp_path: Path) -> None:
    """The same study again gives what is there; another one is refused, and leaves it."""
    simulated(FEW, tmp_path, "easy")
    before = parquets(tmp_path)
    simulated(FEW, tmp_path, "easy")
    simulated(FEW, tmp_path, "fifo")

    others = (
        (FEW._replace(end=streams.BEGIN + 600), 60),
        (streams.made([streams.submit(streams.TWENTY[0])]), 60),
        (FEW, 90),
    )
    for other, every in others:
        with pytest.raises(Refusal, match="it has results of easy for another stream, --every or --until"):
            study.study(other, "easy", Lake(tmp_path, "hand"), every)
    assert before.items() <= parquets(tmp_path).items()


@pytest.mark.parametrize(("every", "left"), [(1, 0), (100, 1)])
def test_what_plans_leave_behind_in_circles_is_walked_over(
    every: int, left: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dates of a cycle refer to what dates by cuts, and that to them."""
    monkeypatch.setattr(study, "COLLECTED", every)
    seen = list[int]()

    def on_turn(_: int) -> None:
        seen.append(sum(isinstance(each, Dating) for each in gc.get_objects()))

    study.study(FEW, "jobtree", Lake(tmp_path, "hand"), 60, on_turn=on_turn)

    assert min(1, max(seen)) == left


FAILING = [
    streams.submit(("kept", "a", 4, 0, 100), runtime={"expected": "100m", "checkpoint": "10m"}),
    streams.submit(("anew", "b", 4, 0, 50), runtime={"expected": "50m", "requeue": True}),
    *(
        {"at": f"2026-01-01T00:{minute}:00Z", "event": event, "node": node, **more}
        for minute, event, node, more in (
            ("02", "node-fail", "n1", {"mode": "NotReady", "outage": 180}),
            ("05", "node-recover", "n1", {}),
            ("25", "node-fail", "n1", {"mode": "OutOfService", "outage": 1200}),
            ("25", "node-fail", "n2", {"mode": "Deleted", "outage": 1200}),
            ("45", "node-recover", "n1", {}),
            ("45", "node-recover", "n2", {}),
        )
    ),
]


@pytest.mark.parametrize(("scheduler", "second"), [("fifo", 45), ("jobtree", 46)])  # a cycle uncordons, the next starts
def test_failed_nodes_cost_what_was_not_saved_and_blips_nothing(scheduler: str, second: int, tmp_path: Path) -> None:
    found = simulated(streams.made(FAILING), tmp_path, scheduler)

    rows = {
        row["name"]: (row["ended"] - streams.BEGIN, row["cuts"], row["lost_gpu_seconds"])
        for row in found.jobs.to_pylist()
    }
    assert rows == {"kept": (60 * (second + 80), 1, 4 * 60 * 5), "anew": (60 * (45 + 50), 1, 4 * 60 * 25)}


def test_who_waits_at_the_end_counts_with_the_wait_so_far(tmp_path: Path) -> None:
    stream = streams.made([streams.submit(job) for job in streams.TWENTY[:3]], end="2026-01-01T00:30:00Z")
    found = simulated(stream, tmp_path, "fifo")

    frame = results.jobs_frame(found)
    assert dict(zip(frame["name"], frame["wait"], strict=True)) == {"j01": 0, "j02": 0, "j03": 25 * 60}
    assert results.waits_by(frame, "size").to_dict("index") == {
        "2-4": {
            "jobs": 3,
            "wait_hours": 25 / 180,
            "p90_wait_hours": pytest.approx(1 / 3),
            "slowdown": pytest.approx(float("nan"), nan_ok=True),
        }
    }


def test_the_page_needs_nothing_else_and_names_every_scheduler(tmp_path: Path) -> None:
    stream = streams.made([streams.submit(job) for job in streams.TWENTY])
    found = [simulated(stream, tmp_path, scheduler) for scheduler in ("fifo", "kueue")]

    page = results.page("hand", found)
    table = re.findall(r'<th scope="row">(.*?)</th><td class="n">(.*?)</td><td class="n">(.*?)</td>', page)
    assert table == [("fifo", "20", "0"), ("kueue", "20", "0")]
    assert re.findall(r'<figcaption id="[^"]*">(.*?)</figcaption>', page) == [
        "GPUs that work, % of those that are there",
        "Mean wait in hours, by GPUs of a job",
        "Bounded slowdown, by GPUs of a job",
        "Mean wait in hours of who waits longest, by owner",
        "Stops of jobs that wait again",
    ]
    assert not re.findall(r'(?:src|href)="(?!data:)|<script|@import', page)


def test_a_panel_is_drawn_for_every_scheduler(tmp_path: Path) -> None:
    once = simulated(streams.made([streams.submit(streams.TWENTY[0])]), tmp_path, "fifo")

    page = results.page("hand", [once._replace(scheduler=name) for name in study.SCHEDULERS])
    figure = page[page.index("GPUs that work") :].partition("</figure>")[0]
    assert [name for name in study.SCHEDULERS if f">{name}</text>" in figure] == list(study.SCHEDULERS)


def test_mean_waits_of_owners_are_not_added_up(tmp_path: Path) -> None:
    rows = [
        {"label": f"org:o{n:02}, {name}", "y": float(n), "series": name} for n in range(30) for name in ("a", "b", "c")
    ]

    shown = results._longest(rows, 3)
    assert [row["label"] for row in shown] == [f"org:o{n:02}, {name}" for n in range(29, 15, -1) for name in "abc"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (
            [streams.submit(streams.TWENTY[1]), streams.submit(streams.TWENTY[0]), streams.submit(streams.TWENTY[0])],
            "is submitted twice",
        ),
        ([streams.submit(streams.TWENTY[2]), streams.submit(streams.TWENTY[0])], "lies before"),
        ([{"at": "2026-01-01T00:00:00Z", "event": "boom"}], "line 2: it is no line of a stream"),
        ([streams.submit(("r", "a", 0, 0, 10))], "its run cannot be used"),
        ([streams.submit(("r", "a", 1, 0, 0))], "its duration is 0 s; allowed are seconds above 0"),
    ],
)
def test_broken_streams_are_refused_with_their_line(lines: list[dict[str, object]], message: str) -> None:
    with pytest.raises(Refusal, match=message):
        streams.made(lines)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (
            ("nowhere",),
            1,
            "error: nowhere: there is no such stream; a stream is a file of submissions, or a folder with",
        ),
        (
            ("stream.jsonl", "--scheduler", "none"),
            2,
            "allowed are jobtree, fifo, easy, easy-limit, conservative, conservative-limit, kueue",
        ),
        (("alone/s.jsonl",), 1, "there is no alone/base.json to begin with; name a state file: --base FILE"),
        (
            ("stream.jsonl", "--until", "2000-01-01T00:00:00Z"),
            1,
            "error: stream: --until 2000-01-01T00:00:00Z leaves nothing of it; it begins at 2026-01-01T00:00:00Z",
        ),
        (("stream.jsonl", "--policy", "base.json"), 1, "error: base.json: it is to hold one Policy and nothing else"),
    ],
)
def test_the_command_refuses_in_one_sentence(
    words: tuple[str, ...], code: int, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "stream.jsonl").write_bytes(streams.text([]))
    (tmp_path / "base.json").write_bytes(streams.base())
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone/s.jsonl").write_bytes(streams.text([]))

    found = jobtree("simulate", *words)

    assert (found.code, message in found.err) == (code, True), found.err


def test_base_and_stream_belong_together(tmp_path: Path) -> None:
    line = {"at": "2026-01-01T00:00:00Z", "event": "running", "name": "x", "remaining": 60}

    with pytest.raises(Refusal, match="Run default/x is said to run, and is not in the base"):
        simulated(streams.made([line]), tmp_path)


def test_growth_is_no_start(tmp_path: Path) -> None:
    """An elastic run that grows when another ends: two starts in all, and its work is done the sooner."""
    malleable = {"minTotalGPUs": 4, "maxTotalGPUs": 8, "stepGPUs": 4}
    lines = [
        streams.submit(("fixed", "b", 4, 0, 30)),
        streams.submit(("elastic", "a", 8, 1, 60), malleable=malleable, runtime={"expected": "2h"}),
    ]
    found = simulated(streams.made(lines), tmp_path)

    rows = {row["name"]: (row["starts"], row["cuts"], row["ended"]) for row in found.jobs.to_pylist()}
    whole = 60 * 60 - 29 * 60 / 2  # of an hour's work at the whole width, 29 minutes went on at half of it
    assert rows == {
        "fixed": (1, 0, streams.BEGIN + 30 * 60),
        "elastic": (1, 0, streams.BEGIN + 30 * 60 + whole),
    }
    assert sum(row["started"] for row in found.turns.to_pylist()) == 2


def test_a_gap_without_end_leaves_the_mean_a_number(tmp_path: Path) -> None:
    """A stage whose bound is 0 and whose value is not has an infinite gap."""
    found = simulated(FEW, tmp_path, "fifo")
    gaps = [math.inf, *[0.0] * (len(found.turns) - 1)]
    turns = found.turns.set_column(found.turns.schema.get_field_index("gap"), "gap", pa.array(gaps))

    assert results.figures(found._replace(turns=turns))["mean_gap"] == 1 / len(gaps)
