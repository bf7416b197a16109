"""Why a run has no date, beside why it waits: one clear reason (spec §5)."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import msgspec

from jobtree.api.values.counted import named
from jobtree.api.values.scalars import Time
from jobtree.world.plan import Plan, Wait
from planner.state.state import State
from policies.inputs.claims import RunKey
from policies.model.payers import Payers


def without_date(plan: Plan, state: State, why: Mapping[RunKey, str]) -> Plan:
    """The plan in which what waits without a date says why; ``why``: as clauses; ``state``: as the plan leaves it."""
    if not why:
        return plan
    windows = _Windows(state)

    def told(wait: Wait) -> Wait:
        key = wait.namespace, wait.name
        return msgspec.structs.replace(wait, undated=why[key] + windows.words(key)) if key in why else wait

    return msgspec.structs.replace(plan, waits=[*map(told, plan.waits)])


class _Windows:
    """Windows that open within the horizon, on which no promise counts (spec §3.3): who would have a date by them."""

    def __init__(self, state: State) -> None:
        self._state = state
        last = state.at + int(state.policy.reservations.horizon)
        self._opens = {
            number: each.start
            for number, each in enumerate(state.money.envelopes)
            if each.start is not None and state.at < each.start <= last
            if not (each.allow_reservations or each.allow_admission)
        }
        self._payers = cache(lambda at: Payers(replace(state.money, at=at, told=at)))

    def words(self, key: RunKey) -> str:
        """The end of a clause: which of them may pay for a run, and when it opens; empty where none may."""
        run, envelopes = self._state.runs[key], self._state.money.envelopes
        opens = [
            f"{envelopes[number].label} opens at {Time(start)}"
            for number, start in self._opens.items()
            if any(each.envelope == number for each in self._payers(start).of(run, run.limit)[0])
        ]
        return f"; {named(opens)}, and no promise counts on that (preActivation.allowReservations)" if opens else ""
