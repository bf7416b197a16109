"""Every case of the state file's tests that a cluster can stage, on a live API server: the very same bodies.

`tests.kube.test_cases` has those that say something of both backends; here the words of `tests.support.worlds` get an
API server behind them, and whatever a case asserts must hold there too. Of a case with parameters the last set runs.

`NOT_STAGED` and `BY_NAME` say of each of the others why it has no twin here. Other tests of this folder stage some of
them with real pods and uids: N1 to N4 and N11 `test_lives`, L4 and an array's pods `test_changes` (L5 is here, as
`test_a_swap_takes_the_slots_back`), P12, L8, V5, V6 and all refusals `test_refusals`, T9 and an end that nobody foresaw
(F9) `test_live_cycle`, X6 and X9 `test_cuts`, V1 `test_faults`. On files alone: F18 (its leases are made by hand), F29
(312 runs), F33 and P14 (random worlds, documents in another order), X4 (a draw by itself), N6 and N9 (reports), V2 (the
lake's bytes), V7 (`--at`), and what the cases U say of printed words, of which `test_commands` has some.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from itertools import count
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

NOT_STAGED: Final = {
    r"\buid\b|uid=": "an API server says itself which uid an object has",
    r"\.(save|snapshot|shuffle|try_cycle|path|lake)\b|jobtree\(": "is about the file itself",
    r"doc\.lease|\.lease\(|add\(": "writes facts by hand that a server takes from planners alone",
    r"delete\(\"Lease\"": "takes an open Lease away, which keeps its finalizer until a cycle has closed it",
}
"""Why a case has no live twin: what it does, as a pattern, and the reason."""
BY_NAME: Final = {
    "test_P12_one_broken_object_stops_nothing": "refuses what is broken",
    "test_P12_a_quarantined_budget_keeps_what_it_pays": "refuses this too",
    "test_L7_an_upstream_that_cannot_be_read_is_waited_for": "refuses this too",
    "test_V3_what_runs_too_deep_already_stays": "keeps a Run where it is in its tree",
    "test_a_run_that_became_unreadable_keeps_its_slots": "refuses this too",
    "test_it_uses_up_hours_above_to_the_second": "refuses this too",
    "test_starts_above_leave_it_what_it_needs_ahead": "refuses this too",
    "test_work_of_a_budget_that_cannot_be_read_holds_its_place_above": "refuses this too",
    "test_a_loan_ends_where_the_lender_hands_its_budget_over": "keeps the owner of a Budget",
    "test_what_it_paid_counts_above_its_first_owner_and_not_above_the_next": "keeps the owner of a Budget",
    "test_a_payer_that_lends_nothing_is_named_as_long_as_it_pays": "keeps the spec of a Lease",
    "test_room_that_comes_later_is_used_in_the_cycle_that_sees_it": "says itself how old a Run is",
    "test_so_is_room_that_a_time_limit_leaves": "says itself how old a Run is",
    "test_and_one_whose_quota_was_lent_for_long_enough": "says itself how old a Run is",
    "test_and_one_whose_node_is_no_longer_in_maintenance": "says itself how old a Run is",
    "test_and_one_whose_node_is_left_by_a_foreign_pod": "says itself how old a Run is",
    "test_an_old_loan_that_ends_changes_the_world_once": "says itself how old a Run is",
    "test_a_loan_of_no_duration_is_old_as_it_begins_and_its_owner_is_promised_what_is_its_own": (
        "says itself how old a Run is"
    ),
    "test_a_member_that_lost_its_mates_says_who_they_are_and_what_would_complete_its_gang": (
        "live, a deleted Run goes at the end of the cycle that closes its leases"
    ),
    "test_room_of_domains_with_one_label_is_named_with_the_region": "asks a command at a time before the last cycle's",
    "test_few_and_many_say_the_same": "makes dozens of Runs, which are a second apart here",
    "test_where_many_wait_one_run_takes_no_more_either": "makes dozens of Runs, which are a second apart here",
    "test_f29_nobody_recalls_for_others": "makes hundreds of Runs, which are a second apart here",
    "test_it_pays_again_once_its_owner_is_the_first_again": "keeps the owner of a Budget",
    "test_a_run_of_the_same_name_is_another_run": "gives a name again when the Run that had it is gone",
    "test_L7_an_upstream_that_ends_while_it_is_being_deleted_is_told_by_its_end": (
        "live, a run ends by its pods, and what is being deleted has ended before"
    ),
    "test_F26_a_broken_budget_pays_on_as_it_did": "drops a field that the kind does not have",
    "test_T9_an_unchanged_world_writes_plans_and_seldom_usage": "live, a world at rest gets no Plan a cycle",
    "test_F9_an_end_that_nobody_foresaw_frees_quota_at_the_cycle_that_sees_it": "live, pods end when a cycle sees it",
    "test_the_money_of_a_loan_that_ages_is_promised_once": "says itself how old a Run is",
    "test_an_array_that_cannot_be_used_keeps_what_runs": "refuses what is broken",
    "test_a_run_that_cannot_be_read_keeps_what_lies_on_a_failed_node_and_stops_no_cycle": "refuses this too",
    "test_a_promise_says_that_its_run_cannot_be_read_and_not_that_it_is_gone": (
        "drops a field that the kind does not have"
    ),
    "test_of_two_promises_of_a_run_the_younger_ends_and_names_the_other": "drops a field that the kind does not have",
    "test_every_way_to_lose_a_payer_is_told": "looks for the last Event, and others are of the clock's time here",
    "test_a_payer_that_comes_back_is_told_with_the_second": "looks at what the command that ran the cycle prints",
}
"""Why these have none: what an API server does, or the test."""


def cases() -> Iterator[tuple[str, Callable[..., None]]]:
    """Cases by their names."""
    for package in (tests.cases, tests.cuts, tests.life):
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            for name, test in sorted(vars(importlib.import_module(found.name)).items()):
                if name.startswith("test_") and inspect.isfunction(test) and not is_hypothesis_test(test):
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
    return next((reason for pattern, reason in NOT_STAGED.items() if re.search(pattern, text_of(test))), "")


STAGED: Final = {name: test for name, test in cases() if not why_not(name, test)}


@pytest.mark.parametrize("name", STAGED)
def test_a_case_holds_on_a_live_cluster(
    thin_kube: Kube, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a test that plays several worlds each begins on an empty cluster."""
    test, folders = STAGED[name], (tmp_path / str(number) for number in count())

    def world() -> LiveWorld:
        thin_kube.reset()
        return LiveWorld(thin_kube, next(folders))

    monkeypatch.setattr(inspect.getmodule(test), "World", world)
    test(**parameters(test))
