"""`kubectl runs verify`: anyone recomputes a draw from what is published; a cycle that crashed draws nothing anew."""

# ruff: noqa: N802  the tests are called by the ids of their cases

import copy
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policies.cuts import lottery
from tests.support import documents
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
    of_the_plan = drawn.runs("verify", plan["metadata"]["name"]).ok().out
    assert of_the_plan.count("  holds  ") == 18
    assert of_the_plan.splitlines()[-1] == "All 18 hold: it was drawn as published."
    beside = drawn.runs("verify", plan["metadata"]["name"], "--lake", drawn.lake).ok().out
    assert beside.splitlines()[-1] == "All 21 hold: it was drawn as published."
    assert ["is not compared" in each for each in (of_the_plan, beside)] == [True, False]
    told = drawn.runs("explain", name, at="+15m").ok().out
    assert f"recompute it: `kubectl runs --state {drawn.path} -n default verify {name}`" in told
    assert "no lottery has taken a lease of it" in drawn.runs("verify", "w").refused()

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


class Published:
    """What of a draw lies about: its Plan's lottery, the leases that it closed, the Reservation, the ConfigMap."""

    def __init__(self, documents: list[dict[str, Any]]) -> None:
        self.documents = documents
        self.plan = self.one("Plan", lambda each: "lottery" in each["status"])
        self.lottery = self.plan["status"]["lottery"]
        self.lease = self.one("Lease", lambda each: each["status"].get("closureReason") == "Lottery")
        self.reservation = self.one("Reservation", bool)
        self.chain = self.one("ConfigMap", lambda each: each["metadata"]["name"] == "jobtree-lottery")

    def one(self, kind: str, of: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        return next(each for each in self.documents if each["kind"] == kind and of(each))


SPOILS: dict[str, tuple[Callable[[Published], object], str]] = {
    "start": (
        lambda of: of.reservation["spec"].update(earliestStart=moment("+14m")),
        "as first promised was published as 2026-01-01T00:15:00Z, and is 2026-01-01T00:14:00Z:",
    ),
    "uid": (lambda of: of.reservation["metadata"].update(uid="other"), "and is other:"),
    "last pick": (lambda of: of.lottery["draws"][0]["picks"].pop(), "and is no pick of the Plan:"),
    "draws": (lambda of: of.lottery.update(draws=[]), "and is no pick of the Plan:"),
    "proof's secret": (lambda of: of.lease["status"]["proof"].update(secret="00" * 32), f"published as {'00' * 32}"),
    "proof's position": (lambda of: of.lease["status"]["proof"].update(position=2), "published as 2, and is 1:"),
    "proof's pick": (lambda of: of.lease["status"]["proof"].update(draw=7), "and is no pick of the Plan:"),
    "proof's Reservation": (
        lambda of: of.lease["status"]["proof"].update(reservation="default/x"),
        "and is default/x:",
    ),
    "no proof": (lambda of: of.lease["status"].pop("proof"), "was published as nothing, and is a pick of Plan "),
    "cause": (
        lambda of: of.lease["status"]["cause"].update(plan="20250101t000000z"),
        "was published as 20250101t000000z, and is 20260101t001500z:",
    ),
    "chain's position": (lambda of: of.chain["data"].update(position="0"), "and is at most 0, as the chain has come"),
    "position above": (lambda of: of.lottery.update(position=2**62), "4611686018427387904"),
    "position below": (lambda of: of.lottery.update(position=-1), "-1"),
    "short secret": (lambda of: of.lottery.update(secret="ab"), "was published as"),
}


@pytest.mark.parametrize("spoil", SPOILS)
def test_what_is_spoilt_is_found_from_the_run_and_from_the_plan(drawn: World, spoil: str) -> None:
    of = Published(copy.deepcopy(drawn.state().documents))
    run, plan = of.lease["spec"]["runRef"]["name"], of.plan["metadata"]["name"]
    change, words = SPOILS[spoil]
    change(of)
    spoilt = World()
    spoilt.path.write_text(documents.dump(of.documents))
    for name in (run, plan):
        output = spoilt.runs("verify", name, at="+20m")
        assert (output.code, words in output.err) == (1, True), output.err
        assert "is :" not in output.err


@pytest.mark.parametrize(("position", "then"), [("1", None), ("0", 1), ("6", 7)])
def test_each_draw_has_the_next_secret_of_the_chain(position: str, then: int | None) -> None:
    """A position that was set back or on between two draws is found in what was drawn after that, and not before."""
    world = World().domain("A", nodes=4).budget("org:w", 96).policy(lottery={"term": "0s"})
    for run in "pqrs":
        world.budget(f"org:{run}", 96).run(run, 8, owner=f"org:{run}", runtime={"requeue": False})
    world.old()
    world.run("w", 8, owner="org:w").cycle()
    world.cycle("+15m")
    published = world.state().documents
    chain = next(each for each in published if each["kind"] == "ConfigMap" and "anchor" in each["data"])
    chain["data"]["position"] = position
    world.path.write_text(documents.dump(published))
    world.run("w2", 8, owner="org:w", created="+20m").cycle("+20m")
    world.cycle("+35m")
    first, second = (each["metadata"]["name"] for each in world.state().all("Plan") if "lottery" in each["status"])
    assert "hold: it was drawn as published." in world.runs("verify", first, at="+40m").ok().out
    output = world.runs("verify", second, at="+40m")
    wrong = f"position of the secret was published as {then}, and is 2: the draw was not made like this"
    assert (output.code, wrong in output.err) == ((0, False) if then is None else (1, True))


def test_leases_that_an_earlier_Policy_let_go_are_not_missed() -> None:
    world = World().domain("A", nodes=2).policy(retention={"leases": "1h"})
    world.budget("org:p", 96).budget("org:q", 96).budget("org:w", 96)
    world.run("p", 8, owner="org:p", runtime={"requeue": False}).run("q", 8, owner="org:q", runtime={"requeue": False})
    world.old()
    world.run("w", 8, owner="org:w").cycle()
    (plan,) = (each["metadata"]["name"] for each in world.cycle("+15m").all("Plan") if "lottery" in each["status"])
    world.cycle("+3h")
    for change in ({"retention": {"leases": "7d"}}, {"retention": {"leases": "1h"}, "mode": "noCuts"}):
        world.edit("Policy", "default", spec=change)
        assert "hold: it was drawn as published." in world.runs("verify", plan, at="+3h").ok().out
    world.delete("Policy", "default")
    assert "hold: it was drawn as published." in world.runs("verify", plan, at="+3h").ok().out


def test_a_Reservation_that_is_gone_is_said_and_not_compared(drawn: World) -> None:
    of = Published(copy.deepcopy(drawn.state().documents))
    of.documents.remove(of.reservation)
    less = World()
    less.path.write_text(documents.dump(of.documents))
    name = f"default/{of.reservation['metadata']['name']}"
    said = less.runs("verify", of.plan["metadata"]["name"], at="+20m").ok().out
    assert f"  -      Reservation {name} is not there any more: not compared\n" in said


def test_the_program_on_the_page_verifies_the_files_of_a_cluster(drawn: World, tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/verify-lottery.md").read_text()
    (tmp_path / "verify.py").write_text(re.findall(r"```python verify.py\n(.*?)```", page, re.DOTALL)[0])
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
