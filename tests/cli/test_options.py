"""Global options: every command takes those that mean something to it, and writing commands print what they wrote."""

import json
from pathlib import Path

import pytest

from jobtree import __version__
from tests.support import documents as doc
from tests.support.commands import jobtree, kubectl_runs
from tests.support.times import T0
from tests.support.worlds import World


def test_both_programs_say_their_version() -> None:
    said = [jobtree("--version"), kubectl_runs("--version")]
    assert [(each.code, each.out) for each in said] == [
        (0, f"jobtree {__version__}\n"),
        (0, f"kubectl runs {__version__}\n"),
    ]


@pytest.mark.parametrize(
    ("option", "command"),
    [
        (["--state", "f"], ["crds"]),
        (["--at", T0], ["crds"]),
        (["--state", "f"], ["replay", "m.json"]),
        (["--at", T0], ["replay", "m.json"]),
        (["--at", T0], ["apply", "p.yaml"]),
    ],
)
def test_an_option_that_means_nothing_is_misuse(option: list[str], command: list[str]) -> None:
    before, after = jobtree(*option, *command), jobtree(*command, *option)
    assert (before.code, after.code) == (2, 2)
    assert before.err.splitlines()[-1] == (
        f"jobtree {command[0]}: error: {option[0]} means nothing to `{command[0]}`; leave it out"
    )
    assert after.err.splitlines()[-1] == f"jobtree {command[0]}: error: unrecognized arguments: {' '.join(option)}"


@pytest.mark.parametrize("port", ["0", "65536", "99999", "9" * 5000, "-1", "x"])
def test_a_port_is_one_that_there_is(port: str) -> None:
    said = jobtree("metrics", "--lake", "lake", f"--port={port}")
    allowed = f"{port!r} is no port; allowed is a whole number from 1 to 65535"
    assert (said.code, said.err.splitlines()[-1]) == (2, f"jobtree metrics: error: argument --port: {allowed}")


@pytest.mark.parametrize("option", [["-o", "json"], ["-n", "x"]])
def test_operators_have_no_formats_and_no_namespaces(option: list[str]) -> None:
    assert jobtree("--state", "f", "cycle", *option).code == 2


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_submit_prints_the_objects_as_they_are_then(tmp_path: Path, form: str) -> None:
    world = World().domain("A").budget("org:a", 8)
    file = tmp_path / "m.yaml"
    file.write_text(doc.dump([doc.run("r", 4), doc.policy(mode="noCuts")]))
    out = world.runs("submit", "-f", file, "-o", form, at=T0).ok().out
    printed = json.loads(out)["items"] if form == "json" else doc.load(out)
    assert printed == [world.state().get("Run", "r"), world.state().get("Policy", "default")]


@pytest.mark.parametrize(
    "args",
    [["cancel", "r"], ["suspend", "r"], ["complete", "r"], ["sponsors", "add", "r", "org:b"], ["resume", "r"]],
)
def test_commands_that_change_a_run_print_it(args: list[str]) -> None:
    world = World().domain("A").budget("org:a", 8).budget("org:b", 8).policy().run("r", 4)
    world.cycle()
    printed = json.loads(world.runs(*args, "-o", "json", at="+1m").ok().out)
    assert printed == world.state().get("Run", "r")
