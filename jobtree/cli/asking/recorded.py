"""What the lake's record says of a draw: the plan that a Plan names by its SHA-256, and those that opened what it took.

A Plan's ``spec`` never changes, so whatever of its draws was edited since is another than in the plan of that digest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING

import msgspec

from jobtree.api.values.errors import Refusal
from jobtree.check.time.lottery import Step

if TYPE_CHECKING:
    from exporters.lake.lake import Lake
    from jobtree.api import Lease, Plan
    from jobtree.api.kinds.plan import Draw
    from jobtree.world.plan import Plan as Record


class Recorded:
    """A Plan's record in a lake; ``lake``: None where none is known."""

    def __init__(self, lake: Lake | None, plan: Plan) -> None:
        self._lake = lake
        self.plan = plan
        self._data = self._read(plan.name)
        self._opened = cache(self._leases)  # many leases of one cycle are asked for

    def whole(self) -> Plan:
        """The Plan, with pools that only the lake has taken from there. Raises Refusal where it has not got them."""
        lottery = self.plan.status.lottery
        if lottery is None:
            return self.plan
        kept = self._record
        pools = {each.reservation: each.pools for each in kept.lottery.draws} if kept and kept.lottery else {}

        def filled(draw: Draw) -> Draw:
            if draw.pools or not draw.pools_digest:
                return draw
            if draw.reservation not in pools:
                raise Refusal(
                    f"the pools of {draw.reservation} are too large for it, and lie in the lake; say --lake DIR",
                    subject=f"Plan {self.plan.name}",
                )
            return msgspec.structs.replace(draw, pools=pools[draw.reservation])

        draws = tuple(map(filled, lottery.draws))
        status = msgspec.structs.replace(self.plan.status, lottery=msgspec.structs.replace(lottery, draws=draws))
        return msgspec.structs.replace(self.plan, status=status)

    def took(self, lease: Lease) -> bool:
        """Does the record say that a draw of this cycle took the lease?"""
        kept = self._record
        named = () if kept is None else kept.closures
        return any(
            (each.namespace, each.name, each.reason) == (lease.namespace, lease.name, "Lottery") for each in named
        )

    def steps(self) -> Iterator[Step]:
        """Is what the Plan publishes of its draws what its record says?"""
        from exporters.plans import planjson
        from exporters.plans.planobject import digest_of, lottery_of

        if self._data is None:
            why = "its plan.json is in no lake that is named: whether its pools are whole is not compared"
            yield Step(why, "", "", compared=False)
            return
        named = next((each.sha256 for each in self.plan.spec.details if each.name == "plan"), "nothing")
        yield Step("SHA-256 of its plan.json in the lake", named, planjson.digest_of(self._data))
        kept = self._record
        lottery = None if kept is None else lottery_of(kept)
        if lottery is not None and self.plan.status.lottery is not None:
            told = {each.reservation: each for each in self.plan.status.lottery.draws}
            for draw in lottery.draws:
                published = digest_of(told[draw.reservation]) if draw.reservation in told else "nothing"
                yield Step(f"SHA-256 of the draw for {draw.reservation}", published, digest_of(draw))

    def opened(self, lease: Lease) -> Iterator[Step]:
        """Is a lease what the cycle that opened it made, where the lake has that: slots, node, payer and all?"""
        from exporters.plans.planobject import digest_of

        for each in self._opened(lease.spec.cycle):
            if (each.namespace, each.name) == (lease.namespace, lease.name):
                yield Step(f"SHA-256 of the spec of Lease {lease.name}", digest_of(lease.spec), digest_of(each.spec))

    def _leases(self, cycle: str) -> Sequence[Lease]:
        """Leases that the plan of a cycle opened, as far as the lake has it."""
        from exporters.plans import planjson

        data = self._read(cycle)
        return () if data is None else planjson.decode(data).leases

    @cached_property
    def _record(self) -> Record | None:
        from exporters.plans import planjson

        named = {each.sha256 for each in self.plan.spec.details}
        is_it = self._data is not None and planjson.digest_of(self._data) in named
        return planjson.decode(self._data) if self._data is not None and is_it else None

    def _read(self, cycle: str) -> bytes | None:
        """The plan of that cycle, None where the lake has none. Raises Refusal where it was changed."""
        from exporters.lake import records, storage
        from exporters.lake.lake import plan_path, read_plan
        from jobtree.world.memory.cycles import moment_of

        moment = moment_of(cycle.upper())
        if self._lake is None or moment is None:
            return None
        path = self._lake.manifest_path(moment.at, moment.number)
        there = storage.exists(plan_path(path)) or records.find(plan_path(path)) is not None
        return read_plan(path) if there else None
