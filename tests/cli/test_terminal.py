"""What only a real process shows: following on a terminal, a reader that goes away, how fast a command answers."""

import os
import pty
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tests.cli.test_reading import status
from tests.support.times import T0
from tests.support.worlds import World

KUBECTL_RUNS = Path(sys.executable).with_name("kubectl-runs")
JOBTREE = Path(sys.executable).with_name("jobtree")


def read_until(terminal: int, text: str, seen: str = "") -> str:
    """What the terminal shows, until it holds ``text`` or the program has ended."""
    while text not in seen:
        try:
            seen += os.read(terminal, 4096).decode()
        except OSError:  # the other end is closed
            break
    return seen


def test_on_a_terminal_watch_follows_until_the_run_is_over() -> None:
    world = World().run("r", 1, status=status("Running", "PodsRunning"))
    ours, theirs = pty.openpty()
    watching = subprocess.Popen(
        [KUBECTL_RUNS, "--state", world.save(), "watch", "r"], stdout=theirs, stdin=subprocess.DEVNULL
    )
    os.close(theirs)
    seen = read_until(ours, "width: 0 of 1 GPUs")
    world.edit("Run", "r", status=status("Completed", "PodsSucceeded"))
    seen = read_until(ours, "never", seen)
    os.close(ours)
    assert watching.wait(timeout=30) == 0
    assert seen.replace("\r", "") == (
        "run: default/r\nphase: Running\nreason: PodsRunning\nwidth: 0 of 1 GPUs\n"
        "\n"
        "run: default/r\nphase: Completed\nreason: PodsSucceeded\nwidth: 0 of 1 GPUs\n"
    )


def test_a_cycle_shows_its_phases_on_a_terminal_only() -> None:
    world = World().policy().run("r", 1)
    ours, theirs = pty.openpty()
    cycle = subprocess.Popen(
        [JOBTREE, "--state", world.save(), "cycle", "--at", T0],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    seen = read_until(ours, "never")
    os.close(ours)
    out, _ = cycle.communicate(timeout=60)
    assert (cycle.returncode, out.startswith(b"Plan 20260101T000000Z")) == (0, True)
    assert "plan" in seen


def test_a_reader_that_goes_away_is_no_failure() -> None:
    world = World().run("r", 1)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [KUBECTL_RUNS, "--state", world.save(), "state"], stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_state_of_a_small_file_answers_at_once() -> None:
    """Half a second is the aim; a shared machine gets three times that before it counts as a regression."""
    world = World().domain("A", nodes=8).budget("org:a", 64)
    for number in range(40):
        world.run(f"r{number}", 1)
    command: list[str | Path] = [KUBECTL_RUNS, "--state", world.save(), "state"]
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - began)
    assert statistics.median(seconds) < 1.5


def test_state_loads_no_heavy_library() -> None:
    world = World().run("r", 1)
    code = (
        "import sys; from jobtree.cli.runs import main; main(sys.argv[1:]);"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & "
        "{'pyarrow', 'numpy', 'highspy', 'rich', 'typer', 'pandas', 'duckdb', 'planner', 'policies'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--state", str(world.save()), "state"], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
