"""`budgets usage`: what each envelope, aggregate and use cap carries and has left, computed at ``--at``."""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from jobtree.cli.common import owners, show
from jobtree.cli.common.args import Commands, Options, command, group

if TYPE_CHECKING:
    from jobtree.api.kinds.budget import BudgetStatus
    from jobtree.world.reading.intake import Intake
    from planner.state.state import State

_COLUMNS: Final = (
    ("OWNED", "ownedGPUs"),
    ("SHARED", "sharedGPUs"),
    ("BORROWED", "borrowedGPUs"),
    ("UNFUNDED", "unfundedGPUs"),
    ("SPARE", "spareGPUs"),
    ("HEADROOM", "headroomGPUs"),
    ("GPU-HOURS", "gpuHoursConsumed"),
    ("GPU-HOURS LEFT", "gpuHoursLeft"),
    ("COMMITTED", "gpuHoursCommitted"),
    ("UNCOMMITTED", "headroomGPUHours"),
    ("CREDITS", "creditsConsumed"),
    ("CREDITS LEFT", "creditsLeft"),
    ("CREDITS UNCOMMITTED", "headroomCredits"),
    ("WINDOW ENDS", "end"),
)


class Loan(NamedTuple):
    """A lease that is borrowed: whose run has it, and who pays."""

    borrower: str
    lender: str
    budget: str
    envelope: str
    gpus: int
    active: bool


_NO_SUMS: Final = frozenset({"headroomGPUs", "end"})
"""Columns without a total: caps overlap, so that the headroom of two is not that of both."""


_SAYS: Final = (
    "HEADROOM is how\nmany GPUs more may be paid for now, UNCOMMITTED how many GPU-hours of a cap are\n"
    "neither spent nor provided for what runs, so that new runs may count on them."
)


def add(commands: Commands) -> None:
    """Declares the command group."""
    kinds = group(commands, "budgets", "what Budgets carry and have left")
    usage = command(
        kinds,
        "usage",
        _usage,
        "show the use of every envelope, aggregate and use cap",
        example="kubectl runs --state cluster.yaml budgets usage --owner org:ai:rai:sys",
    )
    usage.description = f"{usage.description} {_SAYS}"
    usage.add_argument("--owner", metavar="OWNER", help=f"only of {owners.HELP}; also what their runs borrow")


def _usage(options: Options, given: argparse.Namespace) -> int:
    intake = options.intake()
    show.set_aside(intake)
    if intake.hidden and "budgets" not in intake.hidden:  # what the last cycles wrote is anybody's to read
        show.complain("note: the figures are those of the last cycle, and GPU-hours and credits may be 10 minutes old")
        statuses, borrowed = {budget.name: budget.status for budget in intake.budgets}, _borrowed(intake)
    else:
        state = _state(intake, options.time)
        statuses, borrowed = _statuses(state), _on_loan(state)
    is_meant = owners.meant(intake, given.owner)
    records = [record for record in _records(intake, statuses) if is_meant(record["owner"])]
    loans = _loans(borrowed, is_meant) if given.owner is not None else []
    if options.output in {"json", "yaml"}:
        show.data([*records, *loans], options.output)
        return 0
    from exporters.plans.summary import table

    show.say(*(_table(records, _caps(intake)) if records else [_none(options, given, intake)]))
    if loans:
        header = ("BORROWER", "LENDER", "BUDGET/ENVELOPE", "GPUS", "SPARE")
        rows = [
            (loan["owner"], loan["lender"], f"{loan['budget']}/{loan['name']}",
             str(loan["borrowedGPUs"]), str(loan["spareGPUs"]))
            for loan in loans
        ]  # fmt: skip
        show.say("", f"Borrowed by {given.owner}", *table(header, rows))
    return 0


def _none(options: Options, given: argparse.Namespace, intake: Intake) -> str:
    """What to say where no record is listed, and the next step where there is no Budget at all."""
    if given.owner is not None or intake.budgets:
        return "No budgets found."
    return f"No budgets found. Add one: `kubectl runs {options.reach}submit -f FILE`"


def _caps(intake: Intake) -> dict[tuple[str, str, str], tuple[Any, Any, Any]]:
    """(budget, kind, name) → most GPU-hours, most credits and the window's end, each None where there is none."""
    caps: dict[tuple[str, str, str], tuple[Any, Any, Any]] = {}
    for budget in intake.budgets:
        for envelope in budget.spec.envelopes:
            key = (budget.name, "Envelope", envelope.name)
            caps[key] = (envelope.max_gpu_hours, envelope.max_credits, envelope.end)
        for cap in budget.spec.aggregate_caps:
            caps[budget.name, "AggregateCap", cap.name] = (cap.max_gpu_hours, cap.max_credits, None)
        for use in budget.spec.use_caps:
            caps[budget.name, "UseCap", use.name] = (use.max_gpu_hours, use.max_credits, use.end)
    return caps


def _table(records: list[dict[str, Any]], caps: dict[tuple[str, str, str], tuple[Any, Any, Any]]) -> list[str]:
    """A row for each record, and their sums; a column that no row has a number for is left out."""
    from exporters.plans.summary import table

    rows = []
    for record in records:
        hours, credit, end = caps[record["budget"], record["kind"], record["name"]]
        left = {
            "gpuHoursLeft": None if hours is None else max(0, hours - record["gpuHoursConsumed"]),
            "creditsLeft": None if credit is None else max(0, credit - record["creditsConsumed"]),
            "end": None if end is None else str(end),
        }
        rows.append(record | {key: value for key, value in left.items() if value is not None})
    columns = [column for column in _COLUMNS if any(column[1] in row for row in rows)]
    lines = [
        (row["owner"], f"{row['budget']}/{row['name']}{_mark(row)}", *(_number(row.get(field)) for _, field in columns))
        for row in rows
    ]
    counted = [row for row in rows if row["kind"] == "Envelope"]  # aggregate and use caps count the same GPUs again
    if len(counted) > 1:
        sums = [
            _number(None if field in _NO_SUMS else sum(row.get(field, 0) for row in counted)) for _, field in columns
        ]
        lines.append(("TOTAL", "", *sums))
    return table(("OWNER", "BUDGET/ENVELOPE", *(title for title, _ in columns)), lines)


def _state(intake: Intake, at: int) -> State:
    from jobtree.world.tables.snapshot import take
    from planner.state.derive import state_of

    return state_of(take(intake), at)


def _records(intake: Intake, found: Mapping[str, BudgetStatus]) -> list[dict[str, Any]]:
    """A record per envelope, aggregate and use cap, by budget, in the order of its spec."""
    from exporters.plans import plain
    from exporters.plans.nodelist import natural

    records = []
    for budget in sorted(intake.budgets, key=lambda budget: natural(budget.name)):
        status = found[budget.name]
        head = {"budget": budget.name, "owner": str(budget.spec.owner)}
        records += [{**head, "kind": "Envelope", **plain.status(each)} for each in status.envelopes]
        records += [{**head, "kind": "AggregateCap", **plain.status(each)} for each in status.aggregate_caps]
        records += [{**head, "kind": "UseCap", **plain.status(each)} for each in status.use_caps]
    return records


def _statuses(state: State) -> dict[str, BudgetStatus]:
    """The usage of what is there, before anything is planned."""
    from policies.funding.usage import budget_statuses
    from policies.lifecycle.endings import limit_ends

    leases = [lease for held in state.held.values() for lease in held]
    ends = limit_ends(state.runs, state.held)
    left = {key: None if end is None else end - state.at for key, end in ends.items()}
    return budget_statuses(state.book, leases, state.funded.classes, state.spent, state.taken, left, state.node_site)


def _on_loan(state: State) -> list[Loan]:
    """Every lease that is borrowed now."""
    held = [lease for mine in state.held.values() for lease in mine]
    return [
        Loan(each.run_owner, each.owner, each.budget, each.envelope_name, each.gpus, each.active)
        for each in held
        if state.funded.classes.get((each.namespace, each.name)) == "borrowed"
    ]


def _borrowed(intake: Intake) -> list[Loan]:
    """The same of the leases that may be seen, as their ledgers say."""
    found = []
    for lease in intake.leases:
        spec, ledger = lease.spec, lease.status.funding
        if not lease.status.closed and spec.paid_by is not None and ledger and ledger[-1].class_ == "borrowed":
            active, gpus = spec.slice.role == "Active", len(spec.slice.nodes)
            owner = str(spec.run_owner)
            found.append(Loan(owner, str(spec.owner), spec.paid_by.budget, spec.paid_by.envelope, gpus, active))
    return found


def _loans(found: Iterable[Loan], is_meant: Callable[[str], bool]) -> list[dict[str, Any]]:
    """What runs of these owners hold on loan, per borrower, lender and envelope; spares apart, as in a status."""
    from exporters.plans.nodelist import by_names

    gpus: dict[tuple[str, str, str, str], Counter[str]] = defaultdict(Counter)
    for loan in found:
        if is_meant(loan.borrower):
            gpus[loan[:4]]["borrowedGPUs" if loan.active else "spareGPUs"] += loan.gpus
    return [
        {
            "kind": "Loan",
            "owner": owner,
            "lender": lender,
            "budget": budget,
            "name": envelope,
            "borrowedGPUs": count["borrowedGPUs"],
            "spareGPUs": count["spareGPUs"],
        }
        for (owner, lender, budget, envelope), count in sorted(gpus.items(), key=lambda item: by_names(item[0]))
    ]


def _mark(record: dict[str, Any]) -> str:
    return {"AggregateCap": " (aggregate)", "UseCap": " (use)"}.get(record["kind"], "")


def _number(value: float | str | None) -> str:
    return "-" if value is None else f"{value:.2f}" if isinstance(value, float) else str(value)
