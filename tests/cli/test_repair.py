"""What is set aside since it cannot be read: the commands that look say so, and `submit` of a good one repairs it."""

from pathlib import Path

import pytest

from tests.support import documents as doc
from tests.support.times import T0, moment
from tests.support.worlds import World

LATER = moment("+1h")
RUN = doc.run("r", 4)
BUDGET = doc.budget("org:a", [doc.envelope(8)])
POLICY = doc.policy(mode="noCuts")


@pytest.fixture
def world() -> World:
    """A running Run, and its Budget and Policy."""
    world = World().node("n", gpus=8).budget("org:a", 8).run("r", 4).policy(mode="noCuts")
    world.cycle()
    return world


def manifest(folder: Path, *documents: doc.Document) -> Path:
    path = folder / "good.yaml"
    path.write_text(doc.dump(documents))
    return path


BREAKS = [
    ("Run", "r", {"spec": {"resources": {"totalGPUs": "many"}}}, RUN),
    ("Run", "r", {"spec": {"follow": {"after": ["r"]}}}, RUN),
    ("Budget", "org-a", {"spec": {"selectorr": {}}}, BUDGET),
    ("Policy", "default", {"spec": {"mode": "sometimes"}}, POLICY),
]


@pytest.mark.parametrize(("kind", "name", "patch", "good"), BREAKS)
def test_a_good_object_takes_the_place_of_one_that_cannot_be_read(
    world: World, tmp_path: Path, kind: str, name: str, patch: doc.Document, good: doc.Document
) -> None:
    before = world.state().get(kind, name)
    held = world.state().leases()
    world.edit(kind, name, **patch)
    output = world.runs("submit", "-f", manifest(tmp_path, good), at=LATER).ok()
    subject = f"Run default/{name}" if kind == "Run" else f"{kind} {name}"
    assert output.out.splitlines()[0] == f"{subject} replaced"
    assert world.state().get(kind, name) == before
    world.cycle(LATER)
    assert (world.state().running, world.state().leases()) == (["r"], held)


def test_what_can_be_read_of_the_status_and_metadata_stays(world: World, tmp_path: Path) -> None:
    before = world.state().get("Run", "r")
    odd = {"labels": {"team": "x", "odd": 3}, "annotations": 7}
    world.edit("Run", "r", metadata=odd, status={"phase": ["Running"], "width": "wide"})
    world.runs("submit", "-f", manifest(tmp_path, RUN), at=LATER).ok()
    after = world.state().get("Run", "r")
    assert after["metadata"] == {**before["metadata"], "labels": {"team": "x"}}
    assert after["status"] == {key: part for key, part in before["status"].items() if key not in {"phase", "width"}}


def test_objects_that_cannot_stand_together_are_mended_by_one_of_them(tmp_path: Path) -> None:
    world = World().node("n").budget("org:a", 8).run("r", 4).run("s", 4)
    for run, upstream in (("r", "s"), ("s", "r")):
        world.edit("Run", run, spec={"follow": {"after": [upstream]}})
    output = world.runs("submit", "-f", manifest(tmp_path, RUN), at=T0).ok()
    assert output.out.splitlines()[0] == "Run default/r replaced"
    assert world.cycle().running == ["r"]


def test_a_broken_object_takes_no_place(world: World, tmp_path: Path) -> None:
    world.edit("Run", "r", spec={"resources": {"totalGPUs": "many"}})
    before = world.path.read_bytes()
    bad = manifest(tmp_path, {**RUN, "spec": {**RUN["spec"], "funding": {"allowBorow": True}}})
    assert "allowBorow" in world.runs("submit", "-f", bad, at=LATER).refused()
    assert world.path.read_bytes() == before


def test_a_broken_policy_still_refuses_what_does_not_replace_it(world: World, tmp_path: Path) -> None:
    world.edit("Policy", "default", spec={"mode": "sometimes"})
    assert "Policy default: spec.mode" in world.runs("submit", "-f", manifest(tmp_path, RUN), at=LATER).refused()


@pytest.mark.parametrize("command", [["state"], ["leases"], ["fleet"], ["budgets", "usage"]])
def test_commands_that_look_warn_of_each_object_set_aside(world: World, command: list[str]) -> None:
    for name in ("s10", "s9"):
        world.run(name, 1)
    for name in ("s10", "s9"):
        world.edit("Run", name, spec={"resources": {"totalGPUs": "many"}})
    world.edit("Budget", "org-a", spec={"selectorr": {}})
    warned = [f"{subject}: {' '.join(said)}" for subject, said in sorted(world.cycle(LATER).warnings.items())]
    output = world.runs(*command, at=LATER).ok()
    assert sorted(output.err.splitlines()) == sorted(f"warning: {sentence}" for sentence in warned)
    assert [line.split(": ")[1] for line in output.err.splitlines()] == [
        "Budget org-a",
        "Run default/s9",
        "Run default/s10",
    ]
    assert world.runs(*command, "-o", "json", at=LATER).ok().err == output.err


def test_a_run_that_nobody_pays_for_is_told_which_budgets_are_set_aside() -> None:
    world = World().node("n").run("r", 4)
    for name in "abcd":
        world.budget(f"org:{name}", 8)
        world.edit("Budget", f"org-{name}", spec={"selectorr": {}})
    wait = world.cycle().waits["r"]
    assert (wait.reason, wait.message) == (
        "NoFunding",
        (
            "No envelope of org:a or its family pays for H100-80GB: it can never be funded as things stand."
            " Set aside, and so not asked: Budget org-a, Budget org-b, Budget org-c and 1 more."
        ),
    )
