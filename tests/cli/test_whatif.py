"""`whatif`: another world's next cycle beside this one's; nothing is written."""

from pathlib import Path

import msgspec
import pytest

from tests.support import documents as doc
from tests.support.documents import Document
from tests.support.times import T0, moment
from tests.support.worlds import World


def world() -> World:
    """`first` runs, `second` lacks 4 GPUs of money, `wide` lacks room; a node is cordoned."""
    made = World().node("a1").node("a2", 4).node("a3", spec={"unschedulable": True}).budget("org:a", 8)
    made.budget("org:b", 64, lending={"allow": True}).policy().run("first", 4)
    made.cycle("-1h")
    return made.run("second", 8).run("wide", 16, owner="org:b")


def asked(made: World, *options: str | Path) -> Document:
    found: Document = msgspec.json.decode(made.runs("whatif", *options, "-o", "json", at=T0).ok().out)
    return found


def fate(found: Document) -> tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]]:
    """Runs that would start and would not."""
    return found["starts"], found["stops"]


@pytest.mark.parametrize(
    ("options", "words", "starts", "stops"),
    [
        (["--cap", "org-a/gpus=12"], "org-a/gpus has 12 GPUs", {"default/second": {"org-a/gpus": 8}}, {}),
        (["--cap", "org-a/gpus=11"], "org-a/gpus has 11 GPUs", {}, {}),
        (["--width", "second=4"], "Run default/second asks for 4 GPUs", {"default/second": {"org-a/gpus": 4}}, {}),
        (
            ["--cancel", "first"], "Run default/first is cancelled",
            {"default/second": {"org-a/gpus": 8}}, {"default/first": {"org-a/gpus": 4}},
        ),
        (
            ["--suspend", "first"], "Run default/first is suspended",
            {"default/second": {"org-a/gpus": 8}}, {"default/first": {"org-a/gpus": 4}},
        ),
        (
            ["--sponsor", "second=org:b"], "Run default/second may borrow from org:b",
            {"default/second": {"org-a/gpus": 4, "org-b/gpus": 4}}, {},
        ),
        (["--uncordon", "a3"], "node a3 is uncordoned", {"default/wide": {"org-b/gpus": 16}}, {}),
        (["--add-nodes", "a1=1"], "there is 1 node more like a1", {"default/wide": {"org-b/gpus": 16}}, {}),
        (["--add-nodes", "a1=2"], "there are 2 nodes more like a1", {"default/wide": {"org-b/gpus": 16}}, {}),
        (["--cordon", "a1"], "node a1 is cordoned", {}, {}),
    ],
)  # fmt: skip
def test_each_option(
    options: list[str], words: str, starts: dict[str, dict[str, int]], stops: dict[str, dict[str, int]]
) -> None:
    found = asked(world(), *options)
    assert (found["changed"], *fate(found)) == ([words], starts, stops)


def test_several_changes_together_for_people() -> None:
    made = world()
    before = made.save(T0).read_bytes()
    printed = made.runs("whatif", "--cancel", "first", "--add-nodes", "a1=1", at=T0).ok().out

    assert printed == (
        "What if Run default/first is cancelled, and there is 1 node more like a1?\n"
        "\n"
        "Would hold GPUs\n"
        "  RUN            GPUS   PAYERS\n"
        "  default/wide   16     org-b/gpus (16)\n"
        "\n"
        "Would not hold GPUs\n"
        "  RUN             GPUS   PAYERS\n"
        "  default/first   4      org-a/gpus (4)\n"
        "\n"
        "Would wait otherwise\n"
        "  RUN              NOW                    THEN\n"
        f"  default/second   Pending, BudgetShort   Pending, CapacityShort, {moment('+12h')}\n"
        "\n"
        "GPUs\n"
        "  FLAVOR      THERE   THEN   HELD   THEN\n"
        "  H100-80GB   20      28     4      16\n"
        "\n"
        "Stages\n"
        "  STAGE           NOW   THEN   UNIT\n"
        "  starts          0     16     GPU-days of weight\n"
        "  overdraw        0     0      GPUs\n"
        "  opportunistic   0     0      GPU-days of weight\n"
        "  payers          0     0      GPUs × rank\n"
        "  domains         0     1      domains of runs\n"
        "  holes           64    16     squared free GPUs of domains\n"
    )
    assert made.path.read_bytes() == before


def test_a_file_replaces_and_adds(tmp_path: Path) -> None:
    made = world()
    budget = doc.budget("org:a", [doc.envelope(12)])
    (tmp_path / "f.yaml").write_text(doc.dump([budget, doc.run("new", 1, "org:b")]))
    found = asked(made, "-f", tmp_path / "f.yaml")

    assert found["changed"] == ["Budget org-a is as in the file", "Run default/new is as in the file"]
    assert fate(found) == ({"default/second": {"org-a/gpus": 8}}, {})
    assert [run["metadata"]["name"] for run in made.state().all("Run")] == ["first", "second", "wide"]

    wider = doc.merge(doc.run("second", 4), {"spec": {"runtime": {"timeLimit": "1h"}}})
    (tmp_path / "f.yaml").write_text(doc.dump([wider]))
    assert fate(asked(made, "-f", tmp_path / "f.yaml")) == ({"default/second": {"org-a/gpus": 4}}, {})


def test_another_payer_is_a_change() -> None:
    made = World().node("a1").budget("org:a", 8).budget("org:a:x", 8).run("r", 8, owner="org:a:x")
    found = asked(made, "--cap", "org-a-x/gpus=2")

    assert found["changes"] == {"default/r": [{"org-a-x/gpus": 8}, {"org-a-x/gpus": 2, "org-a/gpus": 6}]}
    assert "Would hold them otherwise\n" in made.runs("whatif", "--cap", "org-a-x/gpus=2", at=T0).ok().out


def test_where_nothing_changes_that_is_said() -> None:
    printed = world().runs("whatif", "--cap", "org-b/gpus=63", at=T0).ok().out
    assert printed == "What if org-b/gpus has 63 GPUs?\n\nNothing would change: every run would fare as it does now.\n"


def test_what_waits_otherwise_is_told_though_no_run_holds_anything_else() -> None:
    made = World().node("a1").budget("org:a", 16).run("first", 8, limit="1h").run("next", 8)
    made.cycle()
    printed = made.runs("whatif", "--cap", "org-a/gpus=8", "--cancel", "next", at="+1m").ok().out
    assert printed.startswith(
        "What if org-a/gpus has 8 GPUs, and Run default/next is cancelled?\n"
        "\n"
        "Would wait otherwise\n"
        "  RUN            NOW                                            THEN\n"
        f"  default/next   Pending, CapacityShort, {moment('+1h')}   Failed, Cancelled\n"
        "\n"
        "Every run would hold what it holds now.\n"
        "\n"
        "GPUs\n"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--cap", "org-z/gpus=1"], "error: there is no Budget org-z; there are org-a, org-b"),
        (["--cap", "org-a/x=1"], "error: Budget org-a has no envelope, aggregate cap or use cap x; there are gpus"),
        (["--cordon", "z"], "error: there is no node z"),
        (["--add-nodes", "z=1"], "error: there is no node z"),
        (["--remove-node", "z"], "error: there is no node z"),
        (["--cancel", "z"], "error: there is no run called z in any namespace; `kubectl runs state --all` lists them"),
        (["--width", "first=1"], "error: Run default/first holds its GPUs already; only of a run that waits the width"),
    ],
)
def test_what_is_not_there_is_refused(options: list[str], words: str) -> None:
    assert world().runs("whatif", *options, at=T0).refused().startswith(words)


def test_a_width_that_no_run_may_have_is_refused() -> None:
    made = World().node("a1").budget("org:a", 8).run("r", 8, pods=4)
    assert "gpusPerPod" in made.runs("whatif", "--width", "r=6", at=T0).refused()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "nothing is changed; say what is to be otherwise, with -f FILE or one of the options"),
        (["--cap", "org-a/gpus"], "argument --cap: 'org-a/gpus' is to be BUDGET/NAME=N: '' is no number"),
        (["--sponsor", "second"], "argument --sponsor: 'second' is to be RUN=OWNER"),
    ],
)
def test_misuse(options: list[str], words: str) -> None:
    output = world().runs("whatif", *options, at=T0)
    assert (output.code, words in output.err) == (2, True)


def test_a_run_that_loses_its_node_would_end_and_start_anew() -> None:
    made = World().node("a1").node("a2").budget("org:a", 8).policy().run("first", 4, runtime={"requeue": True})
    (node,) = made.cycle("-1h").leases("first")[0].nodes
    found = asked(made, "--remove-node", node)

    assert (*fate(found), found["changes"], found["restarts"]) == ({}, {}, {}, {"default/first": {"org-a/gpus": 4}})
    assert "Would end and start anew" in made.runs("whatif", "--remove-node", node, at=T0).ok().out


@pytest.mark.parametrize("text", ["org-a=3", "org-a"])
def test_a_cap_without_a_name_is_told_how_it_is_written(text: str) -> None:
    said = "is without an envelope or cap; allowed is BUDGET/NAME=N, such as org-a/gpus=8"
    assert f"argument --cap: {text!r} {said}" in world().runs("whatif", "--cap", text, at=T0).err
