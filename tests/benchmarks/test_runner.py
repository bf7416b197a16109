"""The benchmark itself: what it measures, and the page it writes."""

import platform
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import fleet, machine, tables
from benchmarks.clock import Clock
from benchmarks.measure import measure


def test_a_cycle_is_measured_and_left_undisturbed(tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    fleet.write_fleet(path, 128)
    before = path.read_bytes()

    found = measure(path, fleet.AT)

    assert path.read_bytes() == before
    assert list(found.spans) == ["read", "snapshot", "tables", "greedy", "plan", "check", "write", "record"]
    assert (found.gpus, found.running_gpus, found.pending_runs, found.violations) == (128, 109, 12, 0)
    assert found.greedy_weighted <= found.weighted
    assert found.weighted in [stage.value for stage in found.stages]


def test_the_page_states_machine_gap_and_times() -> None:
    span = {"wall": 0.5, "cpu": 0.25, "peak_mb": 90}
    stage = {"name": "starts", "unit": "GPU-seconds", "sense": "max", "value": 900, "bound": 1000}
    counts = dict.fromkeys(("running_gpus", "pending_runs", "pending_gpus", "started_runs", "started_gpus"), 7)
    cycle: dict[str, Any] = {"gpus": 1000, **counts, "spans": {"read": span, "plan": span}, "stages": [stage]}
    cycle |= {"weighted": 900, "greedy_runs": 1, "greedy_gpus": 5, "greedy_weighted": 800, "violations": 0, "writes": 3}
    world = {
        "world": "fleet-1000",
        "command": {"wall": 2.0, "cpu": 1.5, "peakMB": 80, "truncated": True},
        "cycle": cycle,
    }

    page = tables.markdown({"date": "2026-01-12", "machine": machine.describe(), "worlds": [world]})

    assert "| 1,000 | 7 | 7 | 7 | 7 | 7 | 5 | 10.000% | 20.000% | passed |" in page
    assert "| 1,000 | 0.50 (0.25) | 0.50 (0.25) | 1.00 (0.50) | 2.00 (1.50), cut short | 90 |" in page
    assert "| 1,000 | starts | 900 | 1,000 | 10.0000% | GPU-seconds |" in page


def test_the_machine_is_described_without_its_name() -> None:
    found = machine.describe()

    assert set(found) == {"cores", "processor", "memoryGB", "system", "python", "packages"}
    assert platform.node() not in found.values()


def test_spans_come_in_order() -> None:
    clock = Clock()
    with clock.span("b"):
        pass
    with clock.span("a"):
        pass

    assert list(msgspec.to_builtins(clock.spans)) == ["b", "a"]
