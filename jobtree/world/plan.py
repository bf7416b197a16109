"""The Plan: everything one cycle decides, with its proof and its words (spec §4).

The planner makes it, the checker passes it, exporters write it. It is a pure function of snapshot, time, policy and
version: no wall time, host or path is in it, so the same inputs give the same bytes. Lists are sorted by namespace
and name unless said otherwise. Objects that are to be written stand in it whole, as the API has them.
"""

import math
from typing import Literal

import msgspec

from jobtree.api.kinds.budget import BudgetStatus
from jobtree.api.kinds.lease import Lease
from jobtree.api.kinds.plan import Lottery
from jobtree.api.kinds.reservation import Reservation, ReservationStatus
from jobtree.api.kinds.run import RunStatus
from jobtree.world.memory.balances import Account

PLAN_VERSION = 1


class Record(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Base of the plan's records."""


class Stage(Record, frozen=True, kw_only=True):
    """One objective stage with its certificate.

    ``value`` is what the plan reaches as placed on slots, ``bound`` what no plan can beat given the stages before it.
    Both are integers in ``unit``; ``sense`` says which way is better. ``proven`` is False for stages 8 and 9, which
    state their value only.
    """

    name: str
    unit: str
    sense: Literal["max", "min"]
    value: int
    bound: int
    proven: bool = True

    @property
    def gap(self) -> float:
        """|bound - value| / |bound|: 0.0 is a proven optimum; infinite where the bound is 0 and the value is not."""
        if self.value == self.bound:
            return 0.0
        return abs(self.bound - self.value) / abs(self.bound) if self.bound else math.inf


class Closure(Record, frozen=True, kw_only=True):
    """A lease that ends: ``ended`` in Unix seconds, ``reason`` as in spec §1 (Completed, TimeLimit, ...).

    ``made_room_for``: ``namespace/name`` of the Reservation that it was cut for; ``draw``: which pick of the plan's
    lottery for that one took it, from 0.
    """

    namespace: str
    name: str
    ended: int
    reason: str
    made_room_for: str = ""
    draw: int | None = None


class Segment(Record, frozen=True, kw_only=True):
    """The next entry of an open lease's ledger (spec §3.6): its class from ``since`` on."""

    namespace: str
    name: str
    funding_class: Literal["owned", "shared", "borrowed", "unfunded"]
    since: int
    rate_milli: int | None = None


class PayerTurn(Record, frozen=True, kw_only=True):
    """A run whose payers stop paying for GPUs of it at ``since`` (Unix seconds), or with ``paid`` pay for them again.

    ``message``: who, for how many, and what of it is unfunded after the plan why.
    """

    namespace: str
    name: str
    since: int
    paid: bool
    message: str


class Pruned(Record, frozen=True, kw_only=True):
    """An object that goes: a closed lease, its charges kept in the plan's ``settled`` (spec §3.6), or a promise."""

    namespace: str
    name: str


class Short(Record, frozen=True, kw_only=True):
    """Shortage: the smallest rise of one bound that would admit the run, all else as planned (spec §3.9).

    ``rule`` is the policy family that speaks (concurrency, aggregate, lending, capacity, ...), ``subject`` names the
    bound (``budget/envelope``, ``budget/aggregate``, a domain, the run's own limit), ``amount`` is in ``unit``.
    """

    rule: str
    subject: str
    amount: int
    unit: str


class Wait(Record, frozen=True, kw_only=True):
    """Why a run does not start, computed: the binding bounds, largest shortage first, and the sentence for people.

    ``undated``: why it has no date, as a clause, where that is known.
    """

    namespace: str
    name: str
    reason: str
    message: str
    shorts: list[Short] = []
    deficit_gpus: int = 0
    never: bool = False
    undated: str = ""


class Price(Record, frozen=True, kw_only=True):
    """Worth of one more ``unit`` (GPU, GPU-hour, credit) of a bound to stage ``starts``, by the relaxation.

    ``rule`` and ``subjects`` are as in `Short`: several subjects are caps of equal payers, each with this price. Of
    ``capacity`` the subject is the flavor, and ``domains`` those that the model takes as one kind. ``value``: how much
    the relaxation's optimum rises, GPU-seconds of weight; ``milli_gpus``: thousandths of a GPU that it starts more.
    """

    rule: str
    subjects: tuple[str, ...]
    unit: str
    value: int
    milli_gpus: int
    domains: tuple[str, ...] = ()


class Prices(Record, frozen=True, kw_only=True):
    """Prices of bounds. No plan with d more units of one is worth more than ``relaxed`` + d × its ``value``.

    ``relaxed``: the optimum of the relaxation; ``weight``: what a GPU of a run just created counts; both GPU-seconds of
    weight. ``bounds``: the largest value first; ``more``: how many others may have a price; of all the rest one more
    unit is worth nothing.
    """

    relaxed: int
    weight: int
    bounds: list[Price] = []
    more: int = 0


class RunUpdate(Record, frozen=True, kw_only=True):
    """A Run whose status is to change, with its whole new status."""

    namespace: str
    name: str
    status: RunStatus


class BudgetUpdate(Record, frozen=True, kw_only=True):
    """The usage of a Budget once this plan is carried out."""

    name: str
    status: BudgetStatus


class PlanWarning(Record, frozen=True, kw_only=True):
    """Something that a person should know of; ``object`` is ``Kind namespace/name``."""

    object: str
    message: str


class PromiseUpdate(Record, frozen=True, kw_only=True):
    """A Reservation whose status is to change, with its whole new status."""

    namespace: str
    name: str
    status: ReservationStatus


class Solver(Record, frozen=True, kw_only=True):
    """Solver of the models, and its options: enough to solve them again."""

    name: str
    version: str
    options: dict[str, str]


class Plan(Record, frozen=True, kw_only=True):
    """See the module. ``at``: the cycle's time in Unix seconds, ``since``: that of the last cycle that was carried out;
    ``snapshot`` and ``policy``: SHA-256 digests; ``given``: that of what no cycle writes, and ``changed``: when a cycle
    last had another than the one before, or saw leases or runs end; ``turns``: how
    ``segments`` turn payers of runs; ``settled``: what balances grow by, the charges of
    what is ``pruned``; ``reservations``: new promises, ``promises``: those that move or end, ``lapsed``: those that go;
    ``lottery``: the secret that it reveals, and what was drawn with it.
    """

    version: int = PLAN_VERSION
    jobtree: str
    at: int
    since: int | None = None
    cycle: str
    snapshot: str
    policy: str
    given: str = ""
    changed: int = 0
    solver: Solver
    truncated: bool = False
    stages: list[Stage] = []
    closures: list[Closure] = []
    segments: list[Segment] = []
    turns: list[PayerTurn] = []
    leases: list[Lease] = []
    runs: list[RunUpdate] = []
    budgets: list[BudgetUpdate] = []
    waits: list[Wait] = []
    prices: Prices | None = None
    warnings: list[PlanWarning] = []
    pruned: list[Pruned] = []
    settled: list[Account] = []
    reservations: list[Reservation] = []
    promises: list[PromiseUpdate] = []
    lapsed: list[Pruned] = []
    lottery: Lottery | None = None
