"""The line of a cycle: everything that starts or grows is counted, as what it is."""

from tests.support.commands import jobtree
from tests.support.times import T0
from tests.support.worlds import Cycle, World

ELASTIC = {"minTotalGPUs": 4, "maxTotalGPUs": 12, "stepGPUs": 4}


def said(cycle: Cycle) -> str:
    """What the line says of starts, growth and waits."""
    return cycle.output.out.splitlines()[0].partition("Z: ")[2].rpartition(";")[0]


def world() -> World:
    return World().domain("A", nodes=2).budget("org:a", 16)


def cpu(made: World, name: str) -> World:
    resources = {"gpuType": None, "totalGPUs": None, "pods": 2, "cpuPerPod": "1", "memoryPerPod": "1Gi"}
    return made.run(name, 1, spec={"resources": resources})


def test_indices_of_arrays_are_told_beside_runs() -> None:
    made = world().run("one", 2).run("sweep", 1, spec={"array": {"count": 5, "maxParallel": 3}})
    assert said(made.cycle()) == "4 runs start (3 indices of 1 array), 0 wait"


def test_runs_without_gpus_are_counted_once() -> None:
    made = cpu(cpu(world(), "prep"), "post")
    first = made.cycle()
    assert said(first) == "2 runs start (2 CPU runs), 0 wait"
    assert said(made.run("late", 2).cycle("+1m")) == "1 run starts, 0 wait"


def test_the_table_of_starts_has_runs_without_gpus() -> None:
    made = cpu(world(), "prep").run("one", 2)
    assert jobtree("--state", made.save(), "plan", "--at", T0).ok().out.splitlines()[2:6] == [
        "Starts",
        "  RUN            REASON   GPUS   NODES   PAYER (GPUS)",
        "  default/one    Start    2      a01     org-a/gpus (2)",
        "  default/prep   Start    0      -       -",
    ]


def test_growth_says_by_how_much() -> None:
    made = world().run("wide", 4, by=4, malleable=ELASTIC)
    made.cycle()
    assert said(made.cycle("+1m")) == "0 runs start, 1 run grows by 4 GPUs, 0 wait"
