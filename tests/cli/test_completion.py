"""Completion: what may stand next, and the scripts that ask."""

import subprocess
import sys
from pathlib import Path

import pytest

from jobtree.cli import completion, plugin
from tests.support.commands import kubectl_runs
from tests.support.console import ROOT
from tests.support.worlds import World


def candidates(words: list[str]) -> list[str]:
    """What completes the words of `kubectl runs`."""
    return completion.candidates(plugin.parser(), words)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["s"], ["shrink", "sponsors", "state", "submit", "suspend"]),
        (["budgets", ""], ["usage"]),
        (["sponsors", "a"], ["add"]),
        (["state", "--a"], ["--all", "--all-namespaces", "--at"]),
        (["-n", "x", "lea"], ["leases"]),
        (["shrink", "r", "--b"], ["--by"]),
        (["watch", ""], []),
        (["completion", "x"], []),
    ],
)
def test_commands_and_options_are_completed(words: list[str], found: list[str]) -> None:
    assert candidates(words) == found


def test_runs_of_the_state_file_are_completed() -> None:
    world = World().run("train-1", 1).run("train-2", 1).run("eval", 1)
    assert candidates(["--state", str(world.save()), "plan", "tr"]) == ["train-1", "train-2"]
    assert candidates([f"--state={world.path}", "plan", "tr"]) == ["train-1", "train-2"]
    assert candidates(["--state", "=", str(world.path), "plan", "tr"]) == ["train-1", "train-2"]
    assert candidates(["--state", str(world.path) + ".none", "plan", "tr"]) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "kubectl"])
def test_each_shell_has_its_script(shell: str) -> None:
    assert "kubectl-runs completion --words" in kubectl_runs("completion", shell).ok().out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_page_says_the_line_that_loads_a_script_as_the_script_does(shell: str) -> None:
    first = kubectl_runs("completion", shell).ok().out.splitlines()[0]
    line = first.removeprefix(f"# {shell}: ").replace("|", r"\|")
    assert f" | `{line}` |\n" in (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def test_bash_completes_with_its_script(tmp_path: Path) -> None:
    script = kubectl_runs("completion", "bash").ok().out
    ask = 'COMP_WORDS=(kubectl-runs st); COMP_CWORD=1; _kubectl_runs; echo "${COMPREPLY[@]}"'
    (tmp_path / "kubectl-runs").symlink_to(Path(sys.executable).with_name("kubectl-runs"))
    path = f"{tmp_path}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "-c", f"{script}\n{ask}"], env={"PATH": path}, capture_output=True, text=True, check=True
    )
    assert done.stdout == "state\n"
