"""What a base has running is known from the first turn on; what a stream names has to be in it."""

from pathlib import Path
from typing import Any

import pytest

from exporters.lake.lake import Lake
from jobtree.api import Refusal, Time
from simulator import study
from simulator.results import Outcome
from simulator.stream import Stream
from tests.simulate import streams


def running(name: str, minutes: int, **runtime: str) -> list[dict[str, Any]]:
    """A run of owner a that began so long before the stream, on the first node, and its lease."""
    run = streams.submit((name, "a", 4, -minutes, 240), runtime=runtime)["run"]
    since = str(Time(streams.BEGIN - 60 * minutes))
    about = {"namespace": "default", "uid": f"uid-{name}", "creationTimestamp": since}
    lease = {
        "apiVersion": streams.API,
        "kind": "Lease",
        "metadata": {**about, "name": f"{name}-0", "uid": f"uid-{name}-0"},
        "spec": {
            "owner": "org:a",
            "runRef": {"name": name},
            "runUid": f"uid-{name}",
            "runOwner": "org:a",
            "flavor": "H100",
            "group": 0,
            "slice": {"nodes": [f"n1#{slot}" for slot in range(4)], "role": "Active"},
            "interval": {"start": since},
            "paidBy": {"budget": "a", "envelope": "quota"},
            "reason": "Start",
            "cycle": "20251231T000000Z",
        },
        "status": {"closed": False, "funding": [{"class": "owned", "from": since}]},
    }
    return [{**run, "metadata": {**run["metadata"], **about}}, lease]


def still(name: str, minutes: int) -> dict[str, Any]:
    return {
        "at": str(Time(streams.BEGIN)), "event": "running", "namespace": "default", "name": name,
        "remaining": 60 * minutes,
    }  # fmt: skip


def simulated(stream: Stream, folder: Path, scheduler: str) -> Outcome:
    return study.study(stream, scheduler, Lake(folder, "hand"), 60)


def test_a_running_run_ends_at_its_limit_though_nothing_else_happens(tmp_path: Path) -> None:
    end = str(Time(streams.BEGIN + 2 * 3600))
    stream = streams.made([still("r", 180)], *running("r", 10, timeLimit="30m"), end=end)
    found = simulated(stream, tmp_path, "jobtree")
    (row,) = found.jobs.to_pylist()

    assert (row["outcome"], row["reason"], streams.times(found)) == ("Failed", "TimeLimit", {"r": (-10, 20)})


@pytest.mark.parametrize("scheduler", ["fifo", "jobtree"])
@pytest.mark.parametrize("event", ["node-fail", "node-recover"])
def test_a_node_that_the_base_has_not_is_refused(event: str, scheduler: str, tmp_path: Path) -> None:
    stream = streams.made([{"at": str(Time(streams.BEGIN)), "event": event, "node": "n9", "outage": 60}])
    with pytest.raises(
        Refusal, match=f"node n9 of {event} at 2026-01-01T00:00:00Z is not in the base, which has 2 nodes"
    ):
        simulated(stream, tmp_path, scheduler)


def test_another_stream_is_not_resumed(tmp_path: Path) -> None:
    first, other = (streams.made([streams.submit((name, "a", 1, 0, 5))]) for name in ("one", "two"))
    simulated(first, tmp_path, "jobtree")
    with pytest.raises(Refusal, match="it was begun with another stream than hand; name another --lake"):
        study.study(other, "jobtree", Lake(tmp_path, "hand"), 60, resume=True)


def test_silence_says_how_long_it_lasts() -> None:
    with pytest.raises(Refusal, match="its outage is 0 s; allowed are seconds above 0"):
        streams.made([{"at": str(Time(streams.BEGIN)), "event": "node-fail", "node": "n1"}])
