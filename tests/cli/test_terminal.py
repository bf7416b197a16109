"""What only a real process shows: following on a terminal, a reader that goes away, a full disk, what is imported."""

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.test_reading import status
from tests.support.commands import wait_readable
from tests.support.times import T0
from tests.support.worlds import World

KUBECTL_RUNS = Path(sys.executable).with_name("kubectl-runs")
JOBTREE = Path(sys.executable).with_name("jobtree")


def read_until(terminal: int, text: str, seen: str = "") -> str:
    """What the terminal shows, until it holds ``text`` or the program has ended. Fails where neither is so in time."""
    end = time.monotonic() + 120
    while text not in seen:
        left = max(0.0, end - time.monotonic())
        assert wait_readable(terminal, left), f"no {text!r} within 120 s: {seen}"
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
    seen = read_until(ours, "width: 0 of 1 GPU")
    world.edit("Run", "r", status=status("Completed", "PodsSucceeded"))
    seen = read_until(ours, "never", seen)
    os.close(ours)
    assert watching.wait(timeout=30) == 0
    assert seen.replace("\r", "") == (
        "run: default/r\nphase: Running\nreason: PodsRunning\nwidth: 0 of 1 GPU\n"
        "\n"
        "run: default/r\nphase: Completed\nreason: PodsSucceeded\nwidth: 0 of 1 GPU\n"
    )


def test_watch_counts_down_to_a_promised_start_and_ctrl_c_leaves_no_line() -> None:
    told = {**status("Pending", "CapacityShort"), "earliestStart": "2099-01-01T00:00:00Z", "reservation": "r-1"}
    world = World().run("r", 1, status=told)
    ours, theirs = pty.openpty()
    watching = subprocess.Popen(
        [KUBECTL_RUNS, "--state", world.save(), "watch", "r"], stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL
    )
    os.close(theirs)
    seen = read_until(ours, "starts in ")
    watching.send_signal(signal.SIGINT)
    seen = read_until(ours, "never", seen)
    os.close(ours)
    assert watching.wait(timeout=30) == 130
    block, *countdowns = seen.replace("\r\n", "\n").split("\r\x1b[K")
    assert block.startswith("run: default/r\nphase: Pending\n")
    assert "earliestStart: 2099-01-01T00:00:00Z (reservation r-1)\nstarts in " in block
    assert [line for line in countdowns if line and not line.startswith("starts in ")] == []
    assert countdowns[-1] == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "args"), [(JOBTREE, ["cycle"]), (JOBTREE, ["plan"]), (KUBECTL_RUNS, ["explain", "r"])]
)
def test_what_goes_on_is_shown_on_a_terminal_only_and_changes_nothing(program: Path, args: list[str]) -> None:
    worlds = [World().policy().node("n").budget("org:a", 8).run("r", 1, created="-1h") for _ in range(2)]
    commands = [[str(each) for each in (program, "--state", world.save(), *args, "--at", T0)] for world in worlds]
    ours, theirs = pty.openpty()
    shown = subprocess.Popen(commands[0], stdout=subprocess.PIPE, stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    seen = read_until(ours, "never")
    os.close(ours)
    out, _ = shown.communicate(timeout=60)
    piped = subprocess.run(commands[1], capture_output=True, check=True)
    assert (shown.returncode, out) == (0, piped.stdout)
    assert piped.stderr == b""
    steps = ["snapshot", "plan", "1 found", "writing the best one down", "check"]
    assert sorted(steps, key=seen.find) == steps
    assert [step for step in steps if step not in seen] == []


def test_a_reader_that_goes_away_is_no_failure() -> None:
    world = World().run("r", 1)
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [KUBECTL_RUNS, "--state", world.save(), "state"], stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("args", [["state"], ["state", "-o", "yaml"], ["leases"]])
def test_a_full_disk_is_said_in_one_sentence(args: list[str]) -> None:
    world = World().run("r", 1)
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [KUBECTL_RUNS, "--state", world.save(), *args], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (done.returncode, done.stderr) == (1, b"error: the output cannot be written: no space left on device\n")


def test_a_signal_in_a_finalizer_ends_the_program_all_the_same() -> None:
    code = """
import signal, weakref
from jobtree.cli import entry
entry._prepare()
class Some: pass
some = Some()
weakref.finalize(some, signal.raise_signal, signal.SIGTERM)
del some
signal.pause()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (128 + 15, b"")


@pytest.mark.parametrize(("name", "number"), [("SIGINT", 2), ("SIGTERM", 15)])
@pytest.mark.parametrize(
    ("program", "module"), [("kubectl_runs", "jobtree.cli.plugin"), ("jobtree", "jobtree.cli.operator")]
)
def test_a_signal_ends_a_program_quietly_while_it_is_still_loading(
    program: str, module: str, name: str, number: int
) -> None:
    code = f"""
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from jobtree.cli import entry

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.{name})

sys.meta_path.insert(0, Interrupt())
sys.exit(entry.{program}())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + number, b"", b"")


@pytest.mark.parametrize(
    "args", [["state"], ["state", "--all", "-o", "json"], ["leases"], ["watch", "r"], ["cancel", "r"]]
)
def test_a_small_answer_loads_no_heavy_library(args: list[str]) -> None:
    """What makes a command slow is what it imports, and unlike seconds that is the same on every machine."""
    world = World().run("r", 1)
    code = (
        "import sys; from jobtree.cli.plugin import main; main(sys.argv[1:]);"
        "print(sorted({name.partition('.')[0] for name in sys.modules} & "
        "{'pyarrow', 'numpy', 'highspy', 'rich', 'pandas', 'duckdb', 'vl_convert', 'planner', 'policies'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--state", str(world.save()), *args], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_closed_stderr_is_no_reason_to_fail() -> None:
    world = World().node("n").run("r", 1)
    command = ["sh", "-c", '"$0" "$@" 2>&-', str(JOBTREE), "--state", str(world.save()), "plan", "--at", T0]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    assert (done.returncode, b"r" in done.stdout) == (0, True)
