"""The plan as a record: what it was made from, its stages and its words (spec §4)."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jobtree.api.kinds.run import OVER
from jobtree.check.case.caps import Caps
from jobtree.check.case.case import Case
from jobtree.check.case.claims import Claims
from jobtree.check.case.kin import SPONSOR
from jobtree.check.case.rows import RunKey
from jobtree.check.case.violation import Violation
from jobtree.check.life.shape import width
from jobtree.check.money.recall import Recall
from jobtree.world.memory.cycles import Moment
from jobtree.world.plan import PLAN_VERSION, Stage


def violations(case: Case, claims: Claims, recalls: Recall) -> Iterator[Violation]:
    """Digests and order, then stages, then waits."""
    yield from _sources(case)
    yield from _order(case)
    for stage in case.plan.stages:
        yield from _stage(_Books(case, claims, recalls), stage)
    yield from _waits(case)


def _sources(case: Case) -> Iterator[Violation]:
    for name, given, true in (
        ("version", case.plan.version, PLAN_VERSION),
        ("cycle", case.plan.cycle, Moment(case.at, case.snapshot.number).name),
        ("since", case.plan.since, case.snapshot.since),
        ("snapshot", case.plan.snapshot, case.snapshot.digest),
        ("policy", case.plan.policy, case.snapshot.policy_digest),
        ("given", case.plan.given, case.given_on),
        ("changed", case.plan.changed, case.changed),
    ):
        if given != true:
            yield Violation("plan-names-snapshot", f"Plan {case.plan.cycle}", f"its {name} is {given}, not {true}")


def _order(case: Case) -> Iterator[Violation]:
    """Equal inputs give equal bytes only where every list has its order (spec §4)."""
    plan = case.plan
    lists: Mapping[str, Sequence[tuple[str, ...]]] = {
        "closures": [(each.namespace, each.name) for each in plan.closures],
        "segments": [(each.namespace, each.name) for each in plan.segments],
        "leases": [(each.namespace, each.name) for each in plan.leases],
        "runs": [(each.namespace, each.name) for each in plan.runs],
        "budgets": [(each.name,) for each in plan.budgets],
        "pruned": [(each.namespace, each.name) for each in plan.pruned],
        "reservations": [(each.namespace, each.name) for each in plan.reservations],
        "promises": [(each.namespace, each.name) for each in plan.promises],
        "lapsed": [(each.namespace, each.name) for each in plan.lapsed],
        "settled": [tuple(str(part) for part in each.title[:-1]) for each in plan.settled],
        "waits": [(each.namespace, each.name) for each in plan.waits],
    }
    for name, keys in lists.items():
        if list(keys) != sorted(keys):
            yield Violation("plan-sorted", f"Plan {plan.cycle}", f"its {name} are not sorted by namespace and name")


class _Books(NamedTuple):
    case: Case
    claims: Claims
    recalls: Recall


def _stage(books: _Books, stage: Stage) -> Iterator[Violation]:
    subject = f"Stage {stage.name}"
    value = STAGES[stage.name](books) if stage.name in STAGES else stage.value
    if value != stage.value:
        sentence = f"it states a value of {stage.value}, and the plan's leases give {value}"
        yield Violation("stage-value", subject, sentence)
    wrong_side = stage.bound < stage.value if stage.sense == "max" else stage.bound > stage.value
    if stage.proven and wrong_side:
        sentence = f"its bound {stage.bound} is on the wrong side of its value {stage.value} ({stage.sense})"
        yield Violation("stage-bound", subject, sentence)


def _starts(case: Case, *, funded: bool) -> int:
    """Σ over started runs of Active GPUs × (age.unit + min(age, age.cap)), in seconds."""
    age = case.policy.age
    total = 0
    for key in case.starting:
        run = case.run_of(key)
        leases = case.new_by[key]
        if run is not None and any(lease.payer is not None for lease in leases) == funded:
            waited = 0 if run.created is None else max(0, case.at - run.created)
            total += width(leases) * (int(age.unit) + min(waited, int(age.cap)))
    return total


def _payers(case: Case, caps: Caps) -> int:
    """Σ over claims that start of milli-GPUs × rank of the payer."""
    total = 0
    for lease in case.new:
        if lease.run_key in case.starting and lease.payer in case.envelopes and lease.payer is not None:
            rank = case.kin.rank(lease.run_owner, lease.owner)
            total += case.milli(lease) * (SPONSOR if rank is None or caps.is_loan(lease) else rank)
    return total


def _domains(case: Case) -> int:
    """Domains per started run, added up."""
    found: dict[RunKey, set[tuple[str, ...]]] = defaultdict(set)
    for lease in case.new:
        if lease.node in case.nodes and lease.run_key in case.starting:
            found[lease.run_key].add(case.nodes[lease.node].place)
    return sum(len(places) for places in found.values())


STAGES: Mapping[str, Callable[[_Books], int]] = {
    "starts": lambda books: _starts(books.case, funded=True),
    "overdraw": lambda books: books.recalls.overdraw,
    "growth": lambda books: sum(lease.gpus for lease in books.case.new if lease.reason == "Grow"),
    "opportunistic": lambda books: _starts(books.case, funded=False),
    "payers": lambda books: _payers(books.case, books.claims.caps),
    "domains": lambda books: _domains(books.case),
}
"""Stages whose value follows from the plan's leases; the others are stated, not recomputed."""


def _waits(case: Case) -> Iterator[Violation]:
    for key, times in Counter((wait.namespace, wait.name) for wait in case.plan.waits).items():
        if times > 1:
            yield Violation.of_run("unique-names", key, f"the plan tells {times} times why it waits")
        run = case.run_of(key)
        if run is None or case.after(key):
            state = "is not there" if run is None else "holds leases"
            yield Violation.of_run("wait-or-start", key, f"the plan says why it waits, and it {state}")
    for wait in case.plan.waits:
        unordered = any(
            one.unit == other.unit and one.amount < other.amount
            for one, other in zip(wait.shorts, wait.shorts[1:], strict=False)
        )
        if unordered or any(short.amount <= 0 for short in wait.shorts) or wait.deficit_gpus < 0:
            sentence = "its shortages are not positive and largest first"
            yield Violation.of_run("wait-words", (wait.namespace, wait.name), sentence)
        if not wait.reason or not wait.message:
            yield Violation.of_run("wait-words", (wait.namespace, wait.name), "it waits without reason or sentence")
    told = {(wait.namespace, wait.name) for wait in case.plan.waits}
    for key, run in case.runs.items():
        live = run.total and run.state == "Active" and not run.deleting and not run.array
        waiting = live and not case.after(key) and not case.stands(run)
        if waiting and key not in told and case.phase_after(key) not in OVER:
            yield Violation.of_run("wait-or-start", key, "it neither starts nor is told why it waits")
