"""Cycles that end from outside, as a process does that is killed."""

from collections.abc import Callable

import pytest

from jobtree.cluster.protocol import Write
from jobtree.cluster.statefile import StateFile


class Killed(BaseException):
    """The end of a process, from outside."""


def before_the_first_write(cycle: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> list[Write]:
    """The writes of a cycle that ended before the first of them."""
    found: list[Write] = []

    def killed(_: StateFile, writes: list[Write], _revision: str) -> None:
        found.extend(writes)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(StateFile, "write", killed)
        with pytest.raises(Killed):
            cycle()
    return found
