"""The demo tells its story and ends well."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from examples import demo
from jobtree.api import Time
from tests.examples import picture
from tests.support.commands import kubectl_runs


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str, Path]:
    output = tmp_path_factory.mktemp("demo") / "output"
    console = Console(file=io.StringIO(), width=140)
    code = demo.main(output, console)
    assert isinstance(console.file, io.StringIO)
    return code, console.file.getvalue(), output


def test_it_succeeds(told: tuple[int, str, Path]) -> None:
    code, text, _ = told

    assert code == 0, text


@pytest.mark.parametrize(
    "words", ["runs start", "runs wait", "How good the plan is", "Nothing has changed", "GPU-hours"]
)
def test_it_tells(told: tuple[int, str, Path], words: str) -> None:
    assert words in told[1]


def test_the_command_that_it_names_next_works(told: tuple[int, str, Path]) -> None:
    (line,) = (line for line in told[1].splitlines() if line.startswith("Next: "))
    _, command, *words = line.split()
    assert command.endswith("kubectl-runs")
    at = Time(demo.NOW + 60)
    assert kubectl_runs(*words).ok() == kubectl_runs(
        "state", "--all", "--state", told[2] / "cluster.yaml", "--at", str(at)
    )


def test_it_leaves_state_lake_and_pictures(told: tuple[int, str, Path]) -> None:
    output = told[2]

    assert {path.name for path in output.iterdir()} >= {"cluster.yaml", "cluster.yaml.lake", "fleet.svg", "fleet.png"}
    assert len(list(output.glob("cluster.yaml.lake/cycles/date=2017-10-19/*.json"))) == 2


def test_the_readme_shows_its_picture(told: tuple[int, str, Path]) -> None:
    again = "`python -m tests.examples.picture` writes it anew"
    assert picture.shown_by_the_picture() == picture.shown_by_the_demo(told[2]), again


def test_it_fails_where_a_cycle_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "philly.yaml").write_text("kind: Policy\napiVersion: rq.davidlangworthy.io/v1\nspec: {mode: never}\n")
    monkeypatch.setattr(demo, "HERE", tmp_path)
    console = Console(file=io.StringIO())

    assert demo.main(tmp_path / "output", console) == 1
