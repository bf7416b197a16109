"""Every case of the state file's tests that a cluster can stage, on a live API server: the very same bodies.

`tests.kube.test_cases` has those that say something of both backends; here the words of `tests.support.worlds` get an
API server behind them, and whatever a case asserts must hold there too. Of a case with parameters the last set runs.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from _pytest.mark.structures import ParameterSet
from hypothesis import is_hypothesis_test

import tests.cases
import tests.cuts
import tests.life
from tests.kube.bench.kube import Kube
from tests.kube.world import LiveWorld

ID: Final = re.compile(r"test_[A-Z]+\d+[a-z]?_")
WHOLE: Final = re.compile(r"tests\.life\.|tests\.cases\.test_arrays$")
"""Modules of which every test counts, with an id or without: what becomes of running work, and arrays."""
NOT_STAGED: Final = {
    r"created=|creationTimestamp": "an API server says itself when an object was created",
    r"\buid\b|uid=": "and which uid it has",
    r"\.usage\(|\.runs\((?!\"(?:shrink|cancel|suspend|resume|complete)\")": (
        "asks a command at a time of its own, and the time of a live cluster is its own"
    ),
    r"\.(save|snapshot|shuffle|try_cycle|path|lake)\b|jobtree\(": "is about the file itself",
    r"doc\.lease|\.lease\(|add\(": "writes facts by hand that a server takes from planners alone",
}
"""Why a case has no live twin: what it does, as a pattern, and the reason."""
BY_NAME: Final = {
    "test_P12_one_broken_object_stops_nothing": "an API server refuses what is broken",
    "test_F26_a_broken_budget_pays_on_as_it_did": "an API server drops a field that the kind does not have",
    "test_T9_an_unchanged_world_writes_plans_and_seldom_usage": "live, a world at rest gets no Plan a cycle",
    "test_F9_an_end_that_nobody_foresaw_frees_quota_at_the_cycle_that_sees_it": "live, pods end when a cycle sees it",
    "test_an_array_that_cannot_be_used_keeps_what_runs": "an API server refuses what is broken",
    "test_a_run_that_cannot_be_read_keeps_what_lies_on_a_failed_node_and_stops_no_cycle": "as it refuses this",
    "test_an_index_that_loses_its_node_waits_again_or_fails": "plays two worlds, one after the other",
}
"""Why these have none, though what they do could be staged."""


def cases() -> Iterator[tuple[str, Callable[..., None]]]:
    """Cases by their ids and names."""
    for package in (tests.cases, tests.cuts, tests.life):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            module, names = importlib.import_module(found.name), re.compile("test_") if WHOLE.match(found.name) else ID
            for name, test in sorted(vars(module).items()):
                if names.match(name) and inspect.isfunction(test) and not is_hypothesis_test(test):
                    yield name, test


def text_of(test: Callable[..., None]) -> str:
    """The source of a test, and of the functions of its module that it calls."""
    module, done, open_ = inspect.getmodule(test), dict[str, str](), [test]
    while open_:
        each = open_.pop()
        done[each.__name__] = inspect.getsource(each)
        called = (getattr(module, name, None) for name in re.findall(r"\b(\w+)\(", done[each.__name__]))
        mine = [one for one in called if inspect.isfunction(one) and one.__module__ == test.__module__]
        open_ += [one for one in mine if one.__name__ not in done]
    return "\n".join(done.values())


def parameters(test: Callable[..., None]) -> dict[str, Any]:
    """The last set of values of each `parametrize` that stands over a test."""
    found: dict[str, Any] = {}
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize":
            names, sets = mark.args
            names = [each.strip() for each in names.split(",")] if isinstance(names, str) else list(names)
            last = list(sets)[-1]
            values = last.values if isinstance(last, ParameterSet) else last if len(names) > 1 else (last,)
            found |= dict(zip(names, values, strict=True))
    return found


def why_not(name: str, test: Callable[..., None]) -> str:
    """Why a cluster cannot stage it; empty where it can."""
    if name in BY_NAME:
        return BY_NAME[name]
    if "World" not in vars(inspect.getmodule(test)):
        return "plays worlds of another kind"
    if set(inspect.signature(test).parameters) - parameters(test).keys():
        return "has fixtures of its own"
    source = text_of(test) if WHOLE.match(test.__module__) else inspect.getsource(test)
    return next((reason for pattern, reason in NOT_STAGED.items() if re.search(pattern, source)), "")


STAGED: Final = {name: test for name, test in cases() if not why_not(name, test)}


@pytest.mark.parametrize("name", STAGED)
def test_a_case_holds_on_a_live_cluster(
    thin_kube: Kube, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    test = STAGED[name]
    monkeypatch.setattr(inspect.getmodule(test), "World", lambda: LiveWorld(thin_kube, tmp_path))
    test(**parameters(test))
