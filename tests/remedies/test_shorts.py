"""Each number in the words of a wait: with what is short added the run starts, with one less of any of it not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.cycle import plan
from planner.remedies.bench import Bench
from tests.reference import worlds
from tests.reference.worlds import AT, World
from tests.remedies.raising import MONEY, raised
from tests.support.effort import examples


@pytest.mark.parametrize("kind", worlds.KINDS)
@examples(10)
@given(data=st.data())
def test_what_is_short_is_the_least_that_is_enough(kind: str, data: st.DataObject) -> None:
    world: World = data.draw(worlds.worlds(kind, tiny=True))
    now = world.snapshot()
    current = plan(now, AT)
    for wait in current.waits:
        if not wait.shorts or any(short.rule not in MONEY for short in wait.shorts):
            continue
        key = (wait.namespace, wait.name)
        bench = Bench.of(now, current, key)
        if len(bench.state.pending) > 1:
            continue  # a gang starts whole: what one of it lacks is not all
        enough = bench.within(raised(bench.focus, key, wait.shorts, {})).starts()
        less = [s for s in wait.shorts if bench.within(raised(bench.focus, key, wait.shorts, {s: 1})).starts()]

        assert (enough, less) == (True, []), wait
