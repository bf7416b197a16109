"""Names as commands print them are taken by every command that takes a run; slips of the pen are told the nearest."""

import argparse
import re
from collections.abc import Iterator

import pytest

from jobtree.cli import plugin as runs
from tests.cli.test_reading import lease
from tests.support import documents as doc
from tests.support.commands import jobtree, kubectl_runs
from tests.support.times import T0
from tests.support.worlds import World

CALLS = [
    ["plan", "RUN"], ["explain", "RUN"], ["explain", "x/one", "--versus", "RUN"], ["watch", "RUN"], ["events", "RUN"],
    ["leases", "RUN"],
    ["pods", "RUN"], ["cancel", "x/one", "RUN"], ["suspend", "RUN"], ["resume", "RUN"], ["shrink", "RUN", "--by", "1"],
    ["complete", "RUN"], ["sponsors", "list", "RUN"], ["sponsors", "add", "RUN", "org:b"],
    ["sponsors", "remove", "RUN", "org:b"], ["verify", "RUN"],
    ["whatif", "--cancel", "RUN"], ["whatif", "--suspend", "RUN"], ["whatif", "--width", "RUN=1"],
    ["whatif", "--sponsor", "RUN=org:b"],
]  # fmt: skip
"""Every command and option that takes a run; `logs` reads a live cluster alone, by the same rule."""


def world() -> World:
    """Two runs of one name in two namespaces, of which only one is malleable and runs, and a third run."""
    made = World().domain("A").budget("org:a", 32, lending={"to": ["org:*"]}).budget("org:b", 8)
    made.run("one", 1, namespace="x").run("two", 1, namespace="x")
    return made.run("two", 4, namespace="y", malleable={"minTotalGPUs": 1, "maxTotalGPUs": 4, "stepGPUs": 1})


def test_the_calls_are_all_that_take_a_run() -> None:
    takes = set(words(runs.parser()))
    options = {f"whatif {call[1]}" for call in CALLS if call[0] == "whatif"} | {"explain --versus"}
    assert (
        takes
        == {" ".join(call[: 2 if call[0] == "sponsors" else 1]) for call in CALLS} - {"whatif"} | {"logs"} | options
    )


def words(parser: argparse.ArgumentParser, before: str = "") -> Iterator[str]:
    """Commands whose argument is a run, and options whose value is."""
    for action in parser._actions:
        if isinstance(action.choices, dict):
            for name, below in action.choices.items():
                yield from words(below, f"{before}{name} ")
        elif (
            "RUN" in str(action.metavar).split("|")
            or str(action.metavar).startswith(("RUN=", "OTHER"))
            or (action.metavar == "RUN" and action.option_strings)
        ):
            if action.option_strings == ["--follow"] and before == "submit ":
                continue  # of the namespace of what is submitted
            yield (before + (action.option_strings[0] if action.option_strings else "")).strip()


@pytest.mark.parametrize("call", CALLS, ids=" ".join)
def test_a_name_as_printed_means_what_a_namespace_and_a_name_mean(call: list[str]) -> None:
    alone = ["-n", "y"] if "x/one" not in call else []  # else the other run is of another namespace
    assert called(call, "y/two", []) == called(call, "two" if alone else "run/y/two", alone)


@pytest.mark.parametrize(
    ("printed", "options"), [("run/y/two", []), *((name, ["-n", "y"]) for name in ("y/two", "run/y/two"))]
)
def test_a_name_may_say_its_kind_and_n_its_namespace(printed: str, options: list[str]) -> None:
    assert called(["watch", "RUN"], printed, options) == called(["watch", "RUN"], "y/two", [])


@pytest.mark.parametrize("call", [*CALLS, ["logs", "RUN"], ["events", "RUN", "--follow"]], ids=" ".join)
@pytest.mark.parametrize("name", ["", " ", "y/"])
def test_an_empty_name_is_refused_in_a_sentence_before_anything_is_said(call: list[str], name: str) -> None:
    said = world().runs(*(each.replace("RUN", name) for each in call)).refused()
    assert re.fullmatch(r"error: (.*is empty; say which(, or leave it out)?|no run is named by .*)", said)


def test_every_option_that_names_something_refuses_nothing() -> None:
    there = world()
    for flag in (["leases", "--owner"], ["leases", "--envelope"], ["fleet", "--flavor"], ["fleet", "--domain"]):
        assert there.runs(*flag, "").refused() == f"error: {flag[-1]} is empty; say which, or leave it out"


def called(call: list[str], name: str, options: list[str]) -> tuple[int, str, str]:
    """What a command says of the run of that name, and how it exits: not that there is none."""
    output = world().runs(*(each.replace("RUN", name) for each in call), *options, at=T0)
    assert "there is no run" not in output.err
    return output.code, output.out, output.err


@pytest.mark.parametrize("call", [call for call in CALLS if "x/one" not in call], ids=" ".join)
def test_two_namespaces_are_refused_in_a_sentence(call: list[str]) -> None:
    here = [each.replace("RUN", "y/two") for each in call]
    assert world().runs(*here, "-n", "x", at=T0).refused() == (
        "error: y/two is in namespace y, and -n says x; say one of them"
    )


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["y/tow"], "there is no run called tow in namespace y; did you mean y/two?"),
        (["y/one"], "there is no run called one in namespace y; did you mean x/one?"),
        (["tow", "-n", "x"], "there is no run called tow in namespace x; did you mean x/two?"),
        (["onne"], "there is no run called onne in any namespace; did you mean x/one?"),
        (["zzzzz"], "there is no run called zzzzz in any namespace; `kubectl runs state --all` lists them all"),
        (["goen"], "there is no run called goen in any namespace; did you mean z/gone?"),
    ],
)
def test_a_slip_of_the_pen_is_told_the_nearest(typed: list[str], said: str) -> None:
    there = world().add(lease("g-0", "gone", ["a01#0"], ended="-1h", start="-3h", namespace="z"))
    assert there.runs("leases", *typed).refused() == f"error: {said}"


def test_a_run_that_is_gone_is_found_by_its_name_as_printed() -> None:
    there = world().add(lease("g-0", "two", ["a01#0"], ended="-1h", start="-3h", namespace="z"))
    for typed in (["z/two"], ["two", "-n", "z"]):
        assert there.runs("leases", *typed).ok().out.splitlines()[1].split()[:3] == ["two", "0", "Active"]


def test_submit_follows_a_run_by_its_name_as_printed(tmp_path_factory: pytest.TempPathFactory) -> None:
    file = tmp_path_factory.mktemp("manifests") / "m.yaml"
    file.write_text(doc.dump([doc.run("three", 1, namespace="x")]))
    there = world()
    there.runs("submit", "-f", file, "--follow", "x/one", at=T0).ok()
    assert there.state().get("Run", "three")["spec"]["follow"] == {"after": ["one"]}
    assert world().runs("submit", "-f", file, "--follow", "y/two", at=T0).refused() == (
        f"error: {file}: Run x/three is in namespace x, and --follow names a run in y; a run follows runs of its own"
    )


def test_a_sponsor_that_nobody_names_is_refused_with_the_nearest() -> None:
    said = "there is no owner org:bb: no Budget, Run or Lease names it; did you mean org:b?"
    assert world().runs("sponsors", "add", "x/one", "org:bb").refused() == f"error: {said}"
    words = "org:bb has no Budget: it lends nothing as things stand; did you mean org:b?"
    asked = world().runs("whatif", "--sponsor", "x/one=org:bb", at=T0)
    assert asked.ok().err == f"warning: --sponsor x/one=org:bb: {words}\n"


def test_a_sponsor_that_is_listed_can_be_removed() -> None:
    there = world()
    there.runs("sponsors", "add", "y/two", "org:b").ok()
    assert there.runs("sponsors", "remove", "y/two", "org:bb").refused() == (
        "error: Run y/two does not list org:bb as a sponsor; did you mean org:b?"
    )
    assert there.runs("sponsors", "remove", "y/two", "org:b").ok().out == "Run y/two lists org:b as a sponsor no more\n"
    assert there.runs("sponsors", "remove", "y/two", "org:b").refused() == (
        "error: Run y/two does not list org:b as a sponsor"
    )


def test_domains_nodes_slots_and_the_ends_of_owners_are_taken_as_printed() -> None:
    there = World().domain("A", nodes=4).budget("org:ai:sys", 32).run("r", 8, owner="org:ai:sys")
    there.cycle()
    assert there.runs("fleet", "--domain", "domain=A", at=T0) == there.runs("fleet", "--domain", "A", at=T0)
    asked = there.runs("whatif", "--cordon", "a01-a03", at=T0).ok().out
    assert asked.startswith("What if nodes a01-a03 are cordoned?")
    assert "a01-a09" in there.runs("whatif", "--cordon", "a01-a09", at=T0).refused()
    for slots, others in (("a01#0-7", "a02#0-7"), ("a01#0", "a02#0"), ("a01#1-2,5", "a02#3,7")):
        assert there.runs("leases", slots, at=T0).ok() == there.runs("leases", "-A", at=T0).ok()
        assert there.runs("leases", others, at=T0).ok().out == "No leases found.\n"
    assert there.runs("leases", "ab01#0", at=T0).refused() == "error: there is no node ab01; did you mean a01?"
    assert there.runs("leases", "a01#x", at=T0).refused() == "error: a01#x is no slot; allowed is such as a20#0-7"
    said = there.runs("budgets", "usage", "--owner", "sys", at=T0).refused()
    assert said.endswith("; did you mean org:ai:sys?")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["--sate", "f", "cycle"], "jobtree: error: unrecognized arguments: --sate; did you mean --state?"),
        (["--sate=f", "cycle"], "jobtree: error: unrecognized arguments: --sate; did you mean --state?"),
        (["--state", "f", "--ta", "x", "cycle"], "jobtree: error: unrecognized arguments: --ta; did you mean --at?"),
        (["--nothing", "x", "cycle"], "jobtree: error: unrecognized arguments: --nothing"),
        (["cycle", "--sate", "f"], "jobtree cycle: error: unrecognized arguments: --sate f; did you mean --state?"),
        (["cycle", "--lkae=f"], "jobtree cycle: error: unrecognized arguments: --lkae=f; did you mean --lake?"),
        (
            ["cycle", "--every", "10", "--for", "50s"],
            "jobtree cycle: error: argument --every: 10 says no unit; allowed is 10s, 10m or 10h",
        ),
    ],
)
def test_a_mistyped_option_is_named_itself(typed: list[str], said: str) -> None:
    output = jobtree(*typed)
    assert (output.code, output.err.splitlines()[-1]) == (2, said)


def test_a_value_before_the_command_is_no_option() -> None:
    assert kubectl_runs("-n", "--sate", "state").code == 2
    assert world().runs("-n", "x", "-o", "json", "state").code == 0


def test_what_is_left_out_is_said_with_what_there_is() -> None:
    there = world()
    assert there.runs("leases", "--envelope", "org-a/gpu").refused() == (
        "error: there is no envelope org-a/gpu; did you mean org-a/gpus?"
    )
    assert there.runs("leases", "--envelope", "zz").refused() == (
        "error: there is no envelope zz; there are org-a/gpus, org-b/gpus"
    )
    assert World().runs("leases", "--envelope", "zz").refused() == ("error: there is no envelope zz: no Budget has one")
    output = kubectl_runs("completion")
    assert (output.code, output.err.splitlines()[-1]) == (
        2,
        "kubectl runs completion: error: no shell is named; say one of bash, zsh, fish, kubectl",
    )


def test_a_cycle_on_an_empty_file_says_that_there_are_no_nodes() -> None:
    said = "warning: there are no nodes: nothing starts (`kubectl runs submit` adds some to a state file)"
    empty, small = World(), World().node("n")
    empty.save(), small.save()
    assert said in jobtree("--state", empty.path, "cycle", "--at", T0).ok().err.splitlines()
    assert said not in jobtree("--state", small.path, "cycle", "--at", T0).ok().err.splitlines()
