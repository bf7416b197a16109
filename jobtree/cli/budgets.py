"""`budgets usage`: what each envelope and aggregate cap carries and has left, computed at ``--at``."""

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any

from jobtree.cli import show
from jobtree.cli.args import Commands, Options, command

if TYPE_CHECKING:
    from jobtree.api.budget import BudgetStatus
    from jobtree.world.intake import Intake
    from planner.derive import State

_COLUMNS = (
    ("OWNED", "ownedGPUs"),
    ("SHARED", "sharedGPUs"),
    ("BORROWED", "borrowedGPUs"),
    ("UNFUNDED", "unfundedGPUs"),
    ("SPARE", "spareGPUs"),
    ("HEADROOM", "headroomGPUs"),
    ("GPU-HOURS", "gpuHoursConsumed"),
    ("COMMITTED", "gpuHoursCommitted"),
    ("HOURS LEFT", "headroomGPUHours"),
    ("CREDITS", "creditsConsumed"),
    ("CREDITS LEFT", "headroomCredits"),
)


def add(commands: Commands) -> None:
    """Declares the command group."""
    budgets = commands.add_parser("budgets", help="what Budgets carry and have left")
    kinds = budgets.add_subparsers(title="commands", metavar="COMMAND", required=True)
    usage = command(
        kinds,
        "usage",
        _usage,
        "show the use of every envelope and aggregate cap",
        example="kubectl runs --state cluster.yaml budgets usage --owner org:ai:rai:sys",
    )
    usage.add_argument("--owner", metavar="OWNER", help="only this owner's, and what its runs borrow, per lender")


def _usage(options: Options, given: argparse.Namespace) -> int:
    intake = options.cluster().read()
    show.set_aside(intake)
    state = _state(intake, options.time)
    records = [record for record in _records(intake, state) if given.owner in {None, record["owner"]}]
    loans = _loans(state, given.owner) if given.owner is not None else []
    if options.output in {"json", "yaml"}:
        show.data([*records, *loans], options.output)
        return 0
    from exporters.summary import table

    columns = [column for column in _COLUMNS if any(column[1] in record for record in records)]
    header = ("OWNER", "BUDGET/ENVELOPE", *(title for title, _ in columns))
    rows = [
        (record["owner"], f"{record['budget']}/{record['name']}{_mark(record)}",
         *(_number(record.get(field)) for _, field in columns))
        for record in records
    ]  # fmt: skip
    show.say(*(table(header, rows) if rows else ["No budgets found."]))
    if loans:
        rows = [
            (loan["lender"], f"{loan['budget']}/{loan['name']}", str(loan["borrowedGPUs"]), str(loan["spareGPUs"]))
            for loan in loans
        ]
        show.say("", f"Borrowed by {given.owner}", *table(("LENDER", "BUDGET/ENVELOPE", "GPUS", "SPARE"), rows))
    return 0


def _state(intake: Intake, at: int) -> State:
    from jobtree.world.snapshot import take
    from planner.derive import state_of

    return state_of(take(intake), at)


def _records(intake: Intake, state: State) -> list[dict[str, Any]]:
    """A record per envelope and aggregate cap, by budget, in the order of its spec."""
    from exporters import plain
    from exporters.nodelist import natural

    found = _statuses(state)
    records = []
    for budget in sorted(intake.budgets, key=lambda budget: natural(budget.name)):
        status = found[budget.name]
        head = {"budget": budget.name, "owner": str(budget.spec.owner)}
        records += [{**head, "kind": "Envelope", **plain.status(each)} for each in status.envelopes]
        records += [{**head, "kind": "AggregateCap", **plain.status(each)} for each in status.aggregate_caps]
    return records


def _statuses(state: State) -> dict[str, BudgetStatus]:
    """The usage of what is there, before anything is planned."""
    from policies.endings import limit_ends
    from policies.usage import budget_statuses

    leases = [lease for held in state.held.values() for lease in held]
    ends = limit_ends(state.runs, state.held)
    left = {key: None if end is None else end - state.at for key, end in ends.items()}
    return budget_statuses(state.book, leases, state.funded.classes, state.spent, state.taken, left, state.node_site)


def _loans(state: State, owner: str) -> list[dict[str, Any]]:
    """What the owner's runs hold on loan, per lender and envelope; spares apart, as in a Budget's status."""
    from exporters.nodelist import by_names

    gpus: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for lease in (lease for held in state.held.values() for lease in held):
        if lease.run_owner == owner and state.funded.classes.get((lease.namespace, lease.name)) == "borrowed":
            key = lease.owner, lease.budget, lease.envelope_name
            gpus[key]["borrowedGPUs" if lease.active else "spareGPUs"] += lease.gpus
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
        for (lender, budget, envelope), count in sorted(gpus.items(), key=lambda item: by_names(item[0]))
    ]


def _mark(record: dict[str, Any]) -> str:
    return " (aggregate)" if record["kind"] == "AggregateCap" else ""


def _number(value: float | None) -> str:
    return "-" if value is None else str(value) if isinstance(value, int) else f"{value:.2f}"
