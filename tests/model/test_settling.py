"""Who gives way beside the payments of a relaxation is decided whole (planner.settling)."""

import pytest

from planner.relaxed import Relaxed
from planner.settling import in_parts, settle
from tests.model.test_branching import CROWDED, NOISE, SETTINGS, crowded, optimum_from
from tests.reference.large import plan_as_large


@pytest.mark.parametrize("seed", range(40))
def test_what_goes_has_a_limit_that_is_full(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    plan_as_large(monkeypatch)
    master = crowded(seed)
    relaxed = Relaxed(master.model, SETTINGS)
    point, bound = relaxed.best()
    assert point is not None
    was_in_parts = bool(in_parts(master.held, point))

    settled, value = settle(relaxed, master.held, point, bound)

    assert settled is not None
    assert in_parts(master.held, settled) == {}
    assert value <= optimum_from(master, master.held.columns, settled) + NOISE
    assert was_in_parts or seed not in CROWDED
