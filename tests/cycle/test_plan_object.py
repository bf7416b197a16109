"""V4: a Plan object has at most 512 KiB, whatever the world; what is longer lies in the lake."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from exporters.plans import planjson
from exporters.plans.plain import document
from exporters.plans.planobject import LIMIT, build
from jobtree.world.plan import PlanWarning, Price, Prices, Stage
from jobtree.world.reading.intake import Intake
from tests.cycle.test_words import plan_of

many = st.integers(0, 5000)
few = st.integers(0, 20)


def texts(times: int) -> st.SearchStrategy[str]:
    return st.builds(lambda part, times: part * times, st.text(min_size=1, max_size=3), st.integers(1, times))


warned = st.tuples(texts(50_000), texts(50_000), few) | st.tuples(texts(200), texts(200), many)
"""Name, words and how many: one may be longer than an object, and so may be many short ones."""


@given(warned, many, few)
def test_v4_a_plan_object_is_never_above_512_kib(warned: tuple[str, str, int], prices: int, stages: int) -> None:
    name, words, count = warned
    warnings = [PlanWarning(object=f"Run default/{name}", message=words)] * count
    price = Price(rule="concurrency", subjects=("b/e",), unit="GPU", value=1, milli_gpus=1)
    stage = Stage(name="starts", unit="GPU", sense="max", value=1, bound=1)
    plan = plan_of(
        warnings=warnings, prices=Prices(relaxed=1, weight=1, bounds=[price] * prices), stages=[stage] * stages
    )
    encoded = planjson.encode(plan)
    made = build(Intake(revision=""), plan, encoded, {})
    assert len(msgspec.json.encode(document(made))) <= LIMIT
    assert made.spec.details[0].sha256 == planjson.digest_of(encoded)
    assert bool(made.status.warnings) == bool(warnings)


def test_v4_what_is_left_out_of_the_object_is_counted() -> None:
    warnings = [PlanWarning(object=f"Run default/r{number}", message="It is odd.") for number in range(1000)]
    made = build(Intake(revision=""), plan_of(warnings=warnings), b"", {}).status.warnings
    assert len(made) == 201
    assert made[-1].message == "there are 800 more warnings, all of them in the lake's plan.json"
