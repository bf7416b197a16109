"""`plan` and `explain`: the next cycle, computed in memory, as one run sees it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from jobtree.api.values.errors import Refusal
from jobtree.cli.common import lookup, progress, show
from jobtree.cli.common.args import Commands, Options, command, start_planner

if TYPE_CHECKING:
    from jobtree.api import Lease, Run
    from jobtree.cli.fate.fate import Fate
    from jobtree.cli.fate.remedies import Answer
    from jobtree.world.reading.intake import Intake


def add(commands: Commands) -> None:
    """Declares the commands."""
    plan = command(
        commands,
        "plan",
        _plan,
        "say when and where a run starts, or what it lacks",
        example="kubectl runs --state cluster.yaml plan train-32",
    )
    plan.add_argument("run", metavar="RUN")
    explain = command(
        commands,
        "explain",
        _explain,
        "say all that is known of a run: spec, conditions, payers, what binds",
        example="kubectl runs --state cluster.yaml explain train-32",
    )
    explain.add_argument("run", metavar="RUN")
    explain.add_argument(
        "--versus", metavar="OTHER", help="say instead why one of RUN and OTHER is chosen and not the other"
    )


def next_cycle(options: Options, intake: Intake, runs: list[Run]) -> tuple[list[Fate], list[str]]:
    """What the next cycle would do with these runs, and which it would leave unfunded; nothing is written."""
    from cronjobs.cycle import dry_run
    from jobtree.cli.fate import fate

    with progress.shown() as on_phase:
        plan = dry_run(intake, options.time, start_planner(), on_phase=on_phase)
    return [fate.of(run, intake, plan) for run in runs], fate.losing(intake, plan)


def _read(options: Options, given: argparse.Namespace) -> tuple[Intake, Run]:
    start_planner()
    intake = options.intake()
    return intake, lookup.find_run(intake, given.run, options.namespace)


def _plan(options: Options, given: argparse.Namespace) -> int:
    intake, run = _read(options, given)
    (found,), _ = next_cycle(options, intake, [run])
    if options.output in {"json", "yaml"}:
        show.data(found, options.output)
    else:
        show.say(*found.lines())
    return 0


def _explain(options: Options, given: argparse.Namespace) -> int:
    from cronjobs.cycle import dry_run
    from jobtree.cli.fate import awaited, fate, remedies

    intake, run = _read(options, given)
    if given.versus is not None:
        return _versus(options, intake, run, lookup.find_run(intake, given.versus, options.namespace))
    if intake.hidden:
        return _as_told(options, intake, run)
    with progress.shown() as on_phase:
        plan = dry_run(intake, options.time, start_planner(), on_phase=on_phase)
        on_phase("remedies")
        answer = awaited.of(run, intake, plan, options.reach) or remedies.of(run, intake, plan, options)
    found = fate.of(run, intake, plan)
    leases = _leases(intake, run)
    if options.output in {"json", "yaml"}:
        _documents(options, run, leases, [] if answer is None else [_explanation(run, found, answer)])
        return 0
    _head(run)
    show.say("", "Next cycle", *_indented(found.lines() + ([] if answer is None else answer.held_by())))
    if found.reservation:
        show.say("", f"Reservation {run.namespace}/{found.reservation}", *_indented(found.history))
    if answer is not None:
        for title, lines in answer.sections():
            show.say("", title, *_indented(lines))
    _tail(run, leases, intake, options)
    return 0


def _as_told(options: Options, intake: Intake, run: Run) -> int:
    """What the last cycles wrote of it: for who may not list all that the next one is made from."""
    from jobtree.cli.asking.watch import block
    from jobtree.cli.fate import promised

    leases = _leases(intake, run)
    if options.output in {"json", "yaml"}:
        _documents(options, run, leases, [])
        return 0
    _head(run)
    show.say("", "Last cycle", *_indented(block(run, intake)[1:]))
    promise = promised.of((run.namespace, run.name), run.status, intake, None)
    if promise is not None and promise.name:
        told = [*promised.lines(promise), *promise.history]
        show.say("", f"Reservation {run.namespace}/{promise.name}", *_indented(told))
    _tail(run, leases, intake, options)
    show.complain(
        f"note: what the next cycle would do takes the whole cluster, and you may not list {', '.join(intake.hidden)}; "
        "ask for the role jobtree-viewer"
    )
    return 0


def _leases(intake: Intake, run: Run) -> list[Lease]:
    from jobtree.cli.asking.state import in_order

    is_mine = lookup.holders(intake, (run.namespace, run.name))
    return in_order(lease for lease in intake.leases if is_mine(lease.run_key))


def _documents(options: Options, run: Run, leases: list[Lease], computed: list[dict[str, Any]]) -> None:
    from exporters.plans import plain

    objects = [plain.document(run), *(plain.document(lease) for lease in leases)]
    show.data(show.listing([*objects, *computed]), options.output)


def _head(run: Run) -> None:
    from exporters.plans import plain

    document = plain.document(run)
    show.say(f"Run {run.namespace}/{run.name}", "", "Spec", *_indented(_flat(document["spec"])))
    conditions = [f"{each.type}={each.status}{_why(each.reason, each.message)}" for each in run.status.conditions]
    show.say("", "Conditions", *_indented(conditions or [_unseen(run)]))


def _unseen(run: Run) -> str:
    from jobtree.api.kinds.run import IndexRun

    if isinstance(run, IndexRun):
        return f"none of its own yet: {run.of} speaks for its indices until it is their turn"
    return "none yet: no cycle has seen this run"


def _tail(run: Run, leases: list[Lease], intake: Intake, options: Options) -> None:
    from jobtree.cli.asking.state import lease_table
    from jobtree.cli.fate import cuts

    if leases:
        show.say("", "Leases", *_indented(lease_table(leases)))
    if cut := cuts.lines(run, leases, intake, options.time, options.reach):
        show.say("", "Cuts", *_indented(cut))


def _versus(options: Options, intake: Intake, run: Run, other: Run) -> int:
    from cronjobs.cycle import dry_run
    from jobtree.cli.asking import versus

    if run is other:
        raise Refusal(f"{run.subject} is compared with itself; say another run after --versus")
    with progress.shown() as on_phase:
        plan = dry_run(intake, options.time, start_planner(), on_phase=on_phase)
        on_phase("versus")
        found = versus.of(run, other, intake, plan)
    if options.output in {"json", "yaml"}:
        show.data(found, options.output)
    else:
        show.say(*found.lines())
    return 0


def _explanation(run: Run, found: Fate, answer: Answer) -> dict[str, Any]:
    """What was computed, beside the objects as they are: the next cycle as `plan` prints it, and the remedies."""
    from jobtree.api import API_VERSION

    head = {"apiVersion": API_VERSION, "kind": "Explanation"}
    named = {"metadata": {"namespace": run.namespace, "name": run.name}}
    said = {"remedies": answer.remedies, "taken": answer.taken, "heldBy": answer.holders}
    return {**head, **named, "nextCycle": found, **said}


def _why(reason: str, message: str) -> str:
    said = ": ".join(part for part in (reason, message) if part)
    return f"  {said}" if said else ""


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]


def _flat(value: Any, path: str = "") -> list[str]:
    """Nested values as ``path: value`` lines, in the order of the object; a template by its name only."""
    if isinstance(value, dict) and path != "template":
        return [line for key, inner in value.items() for line in _flat(inner, f"{path}.{key}" if path else key)]
    if path == "template":
        return ["template: given"]
    if isinstance(value, list):
        return [f"{path}: {', '.join(str(each) for each in value)}"]
    return [f"{path}: {str(value).lower() if isinstance(value, bool) else value}"]
