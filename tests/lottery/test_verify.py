"""`kubectl runs verify`: anyone recomputes a draw from what is published; a cycle that crashed draws nothing anew."""

# ruff: noqa: N802  the tests are called by the ids of their cases

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from policies.cuts import lottery
from tests.support.commands import jobtree
from tests.support.times import moment
from tests.support.worlds import World

ORIGIN = "5f" * 32


@pytest.fixture(scope="module")
def drawn() -> World:
    """One of two runs is drawn for W."""
    world = World().domain("A", nodes=2).budget("org:p", 96).budget("org:q", 96).budget("org:w", 96)
    world.run("p", 8, owner="org:p").run("q", 8, owner="org:q").old()
    world.run("w", 8, owner="org:w").save()
    origin = ("--lottery-origin", ORIGIN)
    jobtree("--state", world.path, "cycle", "--at", moment("+0s"), "--lake", world.lake, *origin).ok()
    world.cycle("+15m")
    return world


def test_the_chain_is_published_before_it_is_used(drawn: World) -> None:
    assert drawn.state().get("ConfigMap", "jobtree-lottery")["data"] == {
        "anchor": lottery.secret_at(ORIGIN, 0), "length": "1048576", "position": "1", "since": moment("+0s"),
    }  # fmt: skip
    (secret,) = drawn.state().all("Secret")
    assert secret["stringData"] == {"origin": ORIGIN}


def test_X6_a_drawn_run_is_verified_and_a_changed_secret_is_found(drawn: World) -> None:
    state = drawn.state()
    plan = next(each for each in state.all("Plan") if "lottery" in each["status"])
    (pick,) = plan["status"]["lottery"]["draws"][0]["picks"]
    name = pick.removeprefix("default/").removesuffix("#0")
    said = drawn.runs("verify", name).ok().out
    assert said.splitlines()[0] == f"Plan {plan['metadata']['name']}"
    assert f"  holds  pick 0 of {plan['status']['lottery']['draws'][0]['reservation']}: {pick}" in said
    assert drawn.runs("verify", plan["metadata"]["name"]).ok().out.count("  holds  ") == 3
    told = drawn.runs("explain", name, at="+15m").ok().out
    assert f"recompute it: `kubectl runs verify {name}`" in told
    assert "no lottery has taken anything" in drawn.runs("verify", "w").refused()

    secret = plan["status"]["lottery"]["secret"]
    other = ("0" if secret[0] != "0" else "1") + secret[1:]
    text = drawn.path.read_text()
    try:
        drawn.path.write_text(text.replace(secret, other))
        output = drawn.runs("verify", name)
        assert (output.code, output.out.count("  WRONG  ")) == (1, 3)
        assert "secret 1, hashed back to 0 was published as" in output.err
    finally:
        drawn.path.write_text(text)


def test_the_program_on_the_page_verifies_the_files_of_a_cluster(drawn: World, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/verify-lottery.md").read_text()
    (tmp_path / "verify.py").write_text(re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0])
    state = drawn.state()
    plan = next(each for each in state.all("Plan") if "lottery" in each["status"])
    anchor = state.get("ConfigMap", "jobtree-lottery")
    for name, document in (("plan", plan), ("anchor", anchor)):
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    command = [sys.executable, "verify.py", "plan.json", "anchor.json"]
    done = subprocess.run(command, check=False, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_plan_that_drew_is_replayed_byte_for_byte(drawn: World) -> None:
    manifest = next(drawn.lake.glob("cycles/date=2026-01-01/20260101T001500Z.json"))
    assert "the same again" in jobtree("replay", manifest).ok().out
