"""Replay: a stored snapshot planned again must give the stored plan, byte for byte (spec §4, §11)."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec

from cronjobs.deadline import Planner
from cronjobs.news import OnNews
from exporters.lake import lake
from exporters.plans import planjson
from jobtree.api import Refusal
from jobtree.api.values.scalars import DAY
from jobtree.world.memory.lottery import Lot
from jobtree.world.plan import Plan

NO_DEADLINE: Final = DAY
"""A replay asks whether the plan is the same, not whether this machine is as fast."""

_SHOWN: Final = 80


def replay(manifest: Path, planner: Planner, *, on_news: OnNews | None = None) -> Plan:
    """Plans the snapshot of a cycle's manifest again. Raises Refusal with the first difference from the stored plan.

    ``on_news`` hears how the search goes on.
    """
    snapshot, at = lake.read_snapshot(manifest)
    stored = lake.read_plan(manifest)
    before = planjson.decode(stored)
    if before.truncated:
        raise Refusal(
            "its plan was cut off by the deadline, or stands in for one that the checker did not pass, so another "
            "search would end elsewhere; replay a whole one",
            subject=str(manifest),
        )
    if before.lottery is not None:
        snapshot = replace(snapshot, lot=Lot(before.lottery.position, before.lottery.secret))
    plan = planner.plan(snapshot, at, deadline=NO_DEADLINE, on_news=on_news)
    again = planjson.encode(plan)
    if again != stored:
        path, old, new = first_difference(msgspec.json.decode(stored), msgspec.json.decode(again))
        raise Refusal(f"the plan is another one: {path} was {old} and is now {new}", subject=str(manifest))
    return plan


def first_difference(old: Any, new: Any, path: str = "plan") -> tuple[str, str, str]:
    """The first place where two JSON values differ, and what stands there in each."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in [*old, *(key for key in new if key not in old)]:
            if key not in old or key not in new or old[key] != new[key]:
                return first_difference(old.get(key), new.get(key), f"{path}.{key}")
    if isinstance(old, list) and isinstance(new, list):
        for index, (before, after) in enumerate(zip(old, new, strict=False)):
            if before != after:
                return first_difference(before, after, f"{path}[{index}]")
        return f"the length of {path}", str(len(old)), str(len(new))
    return path, _shown(old), _shown(new)


def _shown(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
