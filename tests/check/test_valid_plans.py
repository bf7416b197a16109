"""Plans without fault pass."""

import pytest

from tests.check.scene import Scene
from tests.check.scenes import SCENES


@pytest.mark.parametrize("name", SCENES)
def test_a_faultless_plan_has_no_violation(name: str) -> None:
    assert SCENES[name]().check() == []


def test_the_empty_plan_of_an_empty_world_has_no_violation() -> None:
    assert Scene().check() == []
