"""The demo tells its story and ends well."""

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from examples import demo
from jobtree.api import Time
from tests.examples import picture
from tests.support import documents as doc
from tests.support.commands import kubectl_runs
from tests.support.worlds import State

pytestmark = pytest.mark.slow  # the demo's three cycles of a real fleet are waited for once, and its pictures drawn


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


def test_it_opens_with_its_headline_in_plain_words(told: tuple[int, str, Path]) -> None:
    first, second, *_ = [line for line in told[1].splitlines() if line]
    assert first == "63 of 240 GPUs were free. One cycle (a look, a plan, its writes) later 2 are."
    assert second.startswith("18 of 60 waiting runs (jobs that start with all their GPUs or not at all) start; ")
    opening = " ".join(told[1].partition("\n$ jobtree")[0].split())
    assert "42 go on waiting, 33 for quota alone, 9 for quota and room. One GPU more is worth most at " in opening


def test_before_is_before_the_first_cycle(told: tuple[int, str, Path]) -> None:
    rows = re.findall(r"^philly\S*/\S+ +(\d+) +(\d+) +(\d+) ", told[1], re.MULTILINE)
    quota, before, now = (sum(int(row[place]) for row in rows) for place in range(3))
    assert before < 240 - 63 + 1 <= now <= quota


def test_its_picture_names_every_machine(told: tuple[int, str, Path]) -> None:
    text = (told[2] / "fleet.svg").read_text(encoding="utf-8")
    names = {node["metadata"]["name"] for node in State(doc.read(told[2] / "cluster.yaml")).all("Node")}
    assert {name for name in names if f">{name}</text>" not in text} == set()


def test_the_command_that_it_names_next_works(told: tuple[int, str, Path]) -> None:
    (line,) = (line for line in told[1].splitlines() if line.startswith("Next: "))
    _, command, *words = line.split()
    assert command.endswith("kubectl-runs")
    state, at = told[2] / "cluster.yaml", str(Time(demo.NOW + 120))  # of its last cycle: nothing is planned before that
    assert words[2:] == ["--at", at, "state", "--all"]
    kubectl_runs(*words).ok()
    kubectl_runs("--state", state, "--at", at, "whatif", "--add-nodes", "m1=1").ok()


def test_it_leaves_state_lake_and_pictures(told: tuple[int, str, Path]) -> None:
    output = told[2]

    assert {path.name for path in output.iterdir()} >= {"cluster.yaml", "cluster.yaml.lake", "fleet.svg", "fleet.png"}
    assert len(list(output.glob("cluster.yaml.lake/cycles/date=2017-10-19/*.json"))) == 3


def test_the_readme_shows_its_picture(told: tuple[int, str, Path]) -> None:
    again = "`python -m tests.examples.picture` writes it anew"
    assert picture.shown_by_the_picture() == picture.shown_by_the_demo(told[2]), again


def test_it_fails_where_a_cycle_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "philly.yaml").write_text("kind: Policy\napiVersion: rq.davidlangworthy.io/v1\nspec: {mode: never}\n")
    monkeypatch.setattr(demo, "HERE", tmp_path)
    console = Console(file=io.StringIO())

    assert demo.main(tmp_path / "output", console) == 1
