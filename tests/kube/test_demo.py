"""`make demo-kube`: the whole chart on a Kubernetes of its own, of which nothing is left behind by Ctrl-C."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.kube.bench import build, tools
from tests.kube.conftest import skip_or_fail
from tests.kube.helm import Container


def at_work(folder: Path) -> list[str]:
    """Command lines of processes that know of a folder, or have it as their place for temporary files."""
    found = []
    for each in Path("/proc").iterdir():
        try:
            told = [(each / part).read_bytes() for part in ("cmdline", "environ")] if each.name.isdigit() else []
        except OSError:  # it has ended, or is somebody else's
            continue
        if int(each.name if each.name.isdigit() else 0) != os.getpid() and any(
            os.fsencode(folder) in part for part in told
        ):
            found.append(told[0].decode(errors="replace"))
    return found


@pytest.mark.parametrize("word", ["starts", "The planner runs"])
def test_nothing_of_the_demo_is_left_behind_by_ctrl_c(tmp_path: Path, word: str) -> None:
    there = {**build.find(), **tools.find()}
    skip_or_fail(name for name in (*build.COMMANDS, "helm", "kubectl") if name not in there)
    place = tmp_path / "demo"
    place.mkdir()
    environment = {**os.environ, "TMPDIR": str(place), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "examples.demo_kube"]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True, start_new_session=True) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if word in line:
                break
        os.killpg(demo.pid, signal.SIGINT)  # as a terminal does
        rest = demo.stdout.read()
        assert (demo.wait(60), rest.splitlines()[-1:]) == (130, ["Stopped; nothing is left behind"])
    assert at_work(place) == []
    assert list(place.iterdir()) == []


class Interrupting(Container):
    """A planner that types Ctrl-C as soon as it is there, which is when whoever starts it is starting it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def command(self, *args: str) -> list[str]:
        return ["/bin/sh", "-c", f"kill -INT {os.getpid()}; exec sleep 60"]

    def environment(self) -> dict[str, str]:
        return {**os.environ, "PLACE": str(self.folder)}


def test_a_planner_that_is_starting_when_ctrl_c_comes_is_ended_too(tmp_path: Path) -> None:
    for _ in range(20):
        with pytest.raises(KeyboardInterrupt), Interrupting(tmp_path).over_and_over():
            time.sleep(60)  # until Ctrl-C
        assert at_work(tmp_path) == []
