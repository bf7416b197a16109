"""What cannot be read keeps what it holds; a CPU run is held to its limit without a lease (spec §2, §7)."""

from typing import Any

from tests.support.worlds import World


def test_a_run_that_became_unreadable_keeps_its_slots() -> None:
    world = World().domain("A").budget("org:a", 8).run("r", 4)
    assert world.cycle().running == ["r"]

    cycle = world.edit("Run", "r", spec={"bogus": 1}).run("s", 8).cycle("+1m")

    assert [row.open for row in cycle.leases("r")] == [True]
    assert cycle.leases("s") == []
    assert any(w.object == "Run default/r" and "bogus" in w.message for w in cycle.plan.warnings)


def test_a_cpu_run_ends_at_its_limit() -> None:
    resources: dict[str, Any] = {"gpuType": None, "totalGPUs": None}
    resources |= {"pods": 2, "cpuPerPod": "1", "memoryPerPod": "1Gi"}
    world = World().domain("A").run("prepare", 1, spec={"resources": resources}, limit="1h")
    assert world.cycle().phases == {"prepare": "Running"}

    cycle = world.cycle("+90m")

    assert cycle.phases == {"prepare": "Failed"}
    assert cycle.status("prepare")["ended"] == "2026-01-01T01:00:00Z"
