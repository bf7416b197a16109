"""Plan files and summaries: read by people, and by programs exactly."""

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exporters.plans import planfile, planobject, summary
from exporters.plans.nodelist import compress
from jobtree.api import Lease, ObjectMeta, OwnerPath, Refusal, RunRef, Time
from jobtree.api.kinds.lease import Interval, LeaseSpec, LeaseStatus, Role, Segment, Slice
from jobtree.api.kinds.meta import EnvelopeRef
from jobtree.world.plan import Closure, Plan, PlanWarning, Short, Solver, Stage, Wait
from jobtree.world.reading.intake import Intake

texts = st.text(st.characters(codec="utf-8"), max_size=12)
times = st.integers(0, 4_000_000_000)


def lease(
    name: str, run: str = "r", gpus: int = 1, node: str = "n", payer: str | None = "b", role: Role = "Active"
) -> Lease:
    return Lease(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=LeaseSpec(
            owner=OwnerPath("org:a"),
            run_ref=RunRef(name=run),
            run_uid="uid",
            run_owner=OwnerPath("org:a"),
            flavor="H100-80GB",
            group=0,
            slice=Slice(
                nodes=tuple(f"{node}#{slot}" for slot in range(gpus)), role="Spare" if role == "Spare" else "Active"
            ),
            interval=Interval(start=Time(0)),
            reason="Start",
            paid_by=EnvelopeRef(budget=payer, envelope="e") if payer else None,
        ),
        status=LeaseStatus(funding=(Segment(class_="owned", from_=Time(0), rate=1e-05),)),
    )


def plan_of(**fields: object) -> Plan:
    given = {"jobtree": "0.1.0", "at": 1_767_225_600, "cycle": "20260101t000000z", "snapshot": "5", "policy": "9"}
    solver = Solver(name="HiGHS", version="1.15.1", options={"seed": "1"})
    return Plan(**{**given, "solver": solver, **fields})  # type: ignore[arg-type]


plans = st.builds(
    plan_of,
    cycle=texts,
    truncated=st.booleans(),
    stages=st.lists(
        st.builds(Stage, name=texts, unit=texts, sense=st.sampled_from(["max", "min"]), value=times, bound=times,
                  proven=st.booleans()), max_size=2
    ),
    closures=st.lists(st.builds(Closure, namespace=texts, name=texts, ended=times, reason=texts), max_size=2),
    leases=st.lists(
        st.builds(lease, name=texts.filter(bool), gpus=st.integers(1, 3), payer=st.none() | st.just("b")), max_size=2
    ),
    waits=st.lists(
        st.builds(Wait, namespace=texts, name=texts, reason=texts, message=texts,
                  shorts=st.lists(st.builds(Short, rule=texts, subject=texts, amount=times, unit=texts), max_size=2)),
        max_size=2,
    ),
    warnings=st.lists(st.builds(PlanWarning, object=texts, message=texts), max_size=2),
)  # fmt: skip


GOOD = planfile.dump(plan_of())


@given(plans)
def test_a_plan_file_gives_the_same_plan_again(plan: Plan) -> None:
    assert planfile.load(planfile.dump(plan)) == plan


def test_a_plan_file_begins_with_the_plan_in_words_and_has_one_decision_per_line() -> None:
    plan = plan_of(
        leases=[
            lease("l1", "big", 8, "b01"),
            lease("l2", "big", 8, "b02"),
            lease("l3", "big", 1, "b03", role="Spare"),
            lease("l4", "own", 2, "b04", payer=None),
        ],
        closures=[Closure(namespace="default", name="l0", ended=5, reason="TimeLimit")],
        waits=[Wait(namespace="default", name="late", reason="Concurrency", message="4 GPUs short at a/e.")],
        stages=[
            Stage(name="starts", unit="GPU-seconds", sense="max", value=864, bound=900),
            Stage(name="overdraw", unit="milli-GPUs", sense="min", value=1576, bound=0),
            Stage(name="domains", unit="domains", sense="min", value=2, bound=0, proven=False),
        ],
        warnings=[PlanWarning(object="Node n9", message="it has no flavor\nand is left out")],
    )
    text = planfile.dump(plan)
    assert text[: text.index("\nversion: 1\n")] == (
        "# Plan 20260101t000000z for 2026-01-01T00:00:00Z: 2 runs start, 1 waits, 1 lease ends\n"
        "#\n"
        "# Starts\n"
        "#   RUN           REASON   GPUS   NODES     PAYER (GPUS)\n"
        "#   default/big   Start    16+1   b01-b03   b/e (17)\n"
        "#   default/own   Start    2      b04       - (2)\n"
        "#\n"
        "# Waits\n"
        "#   RUN            REASON        WHY\n"
        "#   default/late   Concurrency   4 GPUs short at a/e.\n"
        "#\n"
        "# Ends\n"
        "#   REASON      LEASES\n"
        "#   TimeLimit   1\n"
        "#\n"
        "# Proof\n"
        "#   STAGE      VALUE   BOUND   GAP          UNIT\n"
        "#   starts     864     900     4.0000%      GPU-seconds\n"
        "#   overdraw   1576    0       1576 above   milli-GPUs\n"
        "#   domains    2       -       -            domains\n"
        "#\n"
        "# Warnings\n"
        "#   Node n9: it has no flavor\\u000aand is left out\n"
    )
    decisions = [line for line in text.splitlines() if line.startswith("- {")]
    assert len(decisions) == len(plan.leases + plan.closures + plan.waits + plan.stages + plan.warnings)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "Expected `object`, got `null`"),
        ("a: [", "line 2, column 1: did not find expected node content"),
        ("\x00", "character 0: control characters are not allowed"),
        ("[" * 200_000, "line 1, column 1001: exceeded maximum nesting depth"),
        ("version: 1", "Object missing required field `jobtree`"),
        (GOOD.replace("at: ", "at: x"), "Expected `int`, got `str` - at `$.at`"),
        (GOOD + "more: 1\n", "Object contains unknown field `more`"),
        ("a: &a [*a]", "line 1: the alias *a stands inside itself"),
    ],
)  # fmt: skip
def test_a_spoilt_plan_file_is_refused_in_one_sentence(text: str, sentence: str) -> None:
    with pytest.raises(Refusal) as refusal:
        planfile.load(text)
    way = "make one with `jobtree plan --out FILE`"
    assert str(refusal.value) == f"it is no plan file, or a spoilt one: {sentence}; {way}"


@pytest.mark.parametrize(
    ("sense", "value", "bound", "gap", "words"),
    [
        ("min", 0, 0, 0.0, "0.0000%"),
        ("min", 12, 12, 0.0, "0.0000%"),
        ("min", 12, 10, 0.2, "20.0000%"),
        ("min", 2, 1, 1.0, "100.0000%"),
        ("min", 168, 59, 109 / 59, "109 above"),
        ("min", 1, 0, None, "1 above"),
        ("min", 1576, 0, None, "1,576 above"),
        ("max", 0, 8, 1.0, "100.0000%"),
        ("max", 7, 8, 0.125, "12.5000%"),
    ],
)
def test_a_gap_is_a_share_of_the_bound_and_a_number_where_no_share_says_anything(
    sense: Literal["max", "min"], value: int, bound: int, gap: float | None, words: str
) -> None:
    stage = Stage(name="overdraw", unit="milli-GPUs", sense=sense, value=value, bound=bound)
    assert summary.gap(stage, number=",") == words
    (recorded,) = planobject.build(Intake(revision=""), plan_of(stages=[stage]), b"", {}).status.stages
    assert (recorded.value, recorded.bound, recorded.gap) == (value, bound, gap)


def test_a_truncated_plan_says_so() -> None:
    assert summary.headline(plan_of(truncated=True)) == (
        "Plan 20260101t000000z for 2026-01-01T00:00:00Z: 0 runs start, 0 wait; cut short before its proof"
    )


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["b01"], "b01"),
        (["b03", "b01", "b02", "b01"], "b01-b03"),
        (["n8", "n9", "n10", "n12"], "n8-n10,n12"),
        (["n09", "n10"], "n09-n10"),
        (["n9", "n010"], "n9,n010"),
        (["a1", "b2"], "a1,b2"),
        (["gpu-a", "gpu-b"], "gpu-a,gpu-b"),
        (["x1y", "x2y"], "x1y,x2y"),
        (["7", "8"], "7-8"),
    ],
)
def test_node_names_are_listed_with_runs_of_numbers_compressed(names: list[str], text: str) -> None:
    assert compress(names) == text
