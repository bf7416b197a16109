"""When Jobtree's next cycle is due after one that nothing follows by itself: a promise, a time limit, a silent node.

Cycles go on until one decides nothing, as on a cluster. Where they move nothing but promises, and nothing else
happens, they do so ever less often: after `REST` such cycles in a row the next one waits 1, 2, 4, … seconds, and when
that is longer than the Policy's horizon, beyond which nothing is promised, none comes until something happens.
"""

from typing import Any, Final

from jobtree.api import Run
from jobtree.api.kinds.policy import PolicySpec
from jobtree.api.kinds.run import OVER
from jobtree.world.plan import Plan
from jobtree.world.reading.intake import Intake
from simulator.stream import Key

REST: Final = 20
"""Cycles in a row that move nothing but promises, and are followed by another one as soon as may be."""


class Due:
    """Dates of cycles: see the module. It hears of all that befalls the cluster."""

    def __init__(self, policy: PolicySpec, intake: Intake) -> None:
        self._policy = policy
        self._silent: dict[str, int] = {}
        self._recovered = False
        self._moved = 0
        self._limits: dict[Key, int] = {}
        for run in intake.runs:
            self.limit(run)
        self._promised: dict[Key, int] = {
            (made.namespace, made.name): int(made.status.earliest_start or made.spec.earliest_start)
            for made in intake.reservations if made.status.stands
        }  # fmt: skip
        self._started: dict[Key, int] = {}
        for lease in intake.leases:
            if not lease.status.closed:
                begun = int(lease.spec.interval.start)
                self._started[lease.run_key] = min(begun, self._started.get(lease.run_key, begun))

    def saved(self) -> dict[str, Any]:
        """State that the cluster does not say: `resume` goes on from it."""
        return {
            "silent": self._silent,
            "recovered": self._recovered,
            "moved": self._moved,
            "promised": {"/".join(key): at for key, at in self._promised.items()},
            "started": {"/".join(key): at for key, at in self._started.items()},
        }

    def resume(self, saved: dict[str, Any]) -> None:
        """Go on from what `saved` returned."""
        self._silent, self._recovered, self._moved = saved["silent"], saved["recovered"], saved["moved"]
        self._promised, self._started = (_keyed(saved[name]) for name in ("promised", "started"))

    def limit(self, run: Run) -> None:
        """Note a run that is there, and its time limit."""
        self.happened()
        if run.spec.runtime.time_limit is not None:
            self._limits[run.namespace, run.name] = int(run.spec.runtime.time_limit)

    def silent(self, node: str, at: int) -> None:
        """Note that a node says nothing since ``at``."""
        self.happened()
        self._silent[node] = at

    def recovered(self, node: str) -> None:
        """Note that a node is well again: the next cycle uncordons it, and another one uses it."""
        self.happened()
        self._recovered = True
        self._silent.pop(node, None)

    def happened(self) -> None:
        """Note that something befell the cluster."""
        self._moved = 0

    def started(self, key: Key, at: int) -> None:
        """Note that a run runs since ``at``."""
        self._started[key] = at

    def stopped(self, key: Key) -> None:
        """Note that it runs no more."""
        self._started.pop(key, None)

    def after(self, plan: Plan, at: int) -> int | None:
        """Date the next cycle after this plan was carried out at ``at``; None: when something happens."""
        self._follow(plan)
        moves = any((plan.reservations, plan.promises, plan.lapsed))
        decides = any((plan.closures, plan.segments, plan.leases)) or self._recovered
        self._recovered = False
        self._moved = 0 if decides or not moves else self._moved + 1
        if decides or (moves and self._moved <= REST):  # a world comes to rest in a cycle that decides nothing
            return at + 1
        patience = int(self._policy.failure.not_ready_after) + 1
        times = [since + patience for since in self._silent.values()]
        times += [start + self._limits[key] for key, start in self._started.items() if key in self._limits]
        wait = 1 << max(0, self._moved - REST)
        if wait <= int(self._policy.reservations.horizon):
            again = [at + wait] if moves else []
            times += [max(each, at + wait) for each in self._promised.values() if each > at] + again
        return min((each for each in times if each > at), default=None)

    def _follow(self, plan: Plan) -> None:
        for made in plan.reservations:
            self._promised[made.namespace, made.name] = int(made.status.earliest_start or made.spec.earliest_start)
        for each in plan.promises:
            name = each.namespace, each.name
            if each.status.state == "Pending" and each.status.earliest_start is not None:
                self._promised[name] = int(each.status.earliest_start)
            else:
                self._promised.pop(name, None)
        for lapsed in plan.lapsed:
            self._promised.pop((lapsed.namespace, lapsed.name), None)
        for run in plan.runs:
            if run.status.phase in OVER:
                self._limits.pop((run.namespace, run.name), None)


def _keyed(times: dict[str, int]) -> dict[Key, int]:
    return {(name.partition("/")[0], name.partition("/")[2]): at for name, at in times.items()}
