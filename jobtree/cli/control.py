"""Commands that change one run: `cancel`, `complete`, `suspend`, `resume`, `shrink`, `sponsors add`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jobtree.api.errors import Refusal
from jobtree.cli import args, lookup, show
from jobtree.cli.args import Commands, Options, command

if TYPE_CHECKING:
    from jobtree.api import Run
    from jobtree.world.intake import Intake

Change = tuple[dict[str, Any] | None, str]
"""A merge patch of the run (None: nothing to do), and what it does to it."""

_TERMINAL = {"Completed", "Failed"}


def add(commands: Commands) -> None:
    """Declares the commands."""
    for name, handler, summary in (
        ("cancel", _cancel, "end a run for good"),
        ("suspend", _suspend, "take a run off its GPUs until it is resumed"),
        ("resume", _resume, "let a suspended run wait for GPUs again"),
        ("complete", _complete, "mark a run complete (state files only, where no pods can say so)"),
    ):
        parser = command(commands, name, handler, summary, example=f"kubectl runs --state cluster.yaml {name} train-32")
        parser.add_argument("run", metavar="RUN")
    shrink = command(
        commands,
        "shrink",
        _shrink,
        "let go of GPUs of a malleable run",
        example="kubectl runs --state cluster.yaml shrink trainer-128 --by 32",
    )
    shrink.add_argument("run", metavar="RUN")
    shrink.add_argument("--by", type=args.count, required=True, metavar="N", help="GPUs fewer than it holds now")
    sponsors = commands.add_parser("sponsors", help="list or add the owners that may lend to a run")
    kinds = sponsors.add_subparsers(title="commands", metavar="COMMAND", required=True)
    listed = command(
        kinds,
        "list",
        _sponsors,
        "list a run's sponsors",
        example="kubectl runs --state cluster.yaml sponsors list sweep",
    )
    listed.add_argument("run", metavar="RUN")
    added = command(
        kinds,
        "add",
        _add_sponsor,
        "add a sponsor, last in preference",
        example="kubectl runs --state cluster.yaml sponsors add sweep org:ai:mm",
    )
    added.add_argument("run", metavar="RUN")
    added.add_argument("owner", metavar="OWNER")


def _cancel(options: Options, given: argparse.Namespace) -> int:
    return _set_state(options, given.run, "Cancelled", "cancelled")


def _suspend(options: Options, given: argparse.Namespace) -> int:
    return _set_state(options, given.run, "Suspended", "suspended")


def _resume(options: Options, given: argparse.Namespace) -> int:
    return _set_state(options, given.run, "Active", "resumed")


def _set_state(options: Options, name: str, state: str, word: str) -> int:
    def change(run: Run, _intake: Intake) -> Change:
        _refuse_terminal(run)
        return (None if run.spec.state == state else {"spec": {"state": state}}), word

    return _change(options, name, change)


def _complete(options: Options, given: argparse.Namespace) -> int:
    from jobtree.api import ANNOTATION_COMPLETED, Time

    def change(run: Run, _intake: Intake) -> Change:
        _refuse_terminal(run)
        if lookup.phase(run) != "Running":
            raise Refusal(f"{run.subject} is {lookup.phase(run)}; only a Running run can be complete")
        now = str(Time(options.time))
        return {"metadata": {"annotations": {ANNOTATION_COMPLETED: now}}}, f"complete at {now}, from the next cycle on"

    return _change(options, given.run, change)


def _shrink(options: Options, given: argparse.Namespace) -> int:
    def change(run: Run, intake: Intake) -> Change:
        malleable = run.spec.malleable
        if malleable is None:
            raise Refusal(f"{run.subject} has a fixed width; only a run with spec.malleable can shrink")
        held = lookup.open_leases(intake.leases).get((run.namespace, run.name), [])
        width = lookup.active_gpus(held)
        desired, floor, step = width - given.by, malleable.min_total_gpus, malleable.step_gpus
        if desired < floor or (desired - floor) % step:
            raise Refusal(
                f"{run.subject} cannot shrink by {given.by}: it holds {width} GPUs, "
                f"and allowed are steps of {step} down to {floor}"
            )
        return {"spec": {"malleable": {"desiredTotalGPUs": desired}}}, f"shrinks from {width} to {desired} GPUs"

    return _change(options, given.run, change)


def _sponsors(options: Options, given: argparse.Namespace) -> int:
    run = lookup.find_run(options.cluster().read(), given.run, options.namespace)
    sponsors = [str(owner) for owner in run.spec.funding.sponsors]
    if options.output in {"json", "yaml"}:
        show.data(sponsors, options.output)
    else:
        show.say(*(sponsors or [f"{run.subject} has no sponsors."]))
    return 0


def _add_sponsor(options: Options, given: argparse.Namespace) -> int:
    from jobtree.api import OwnerPath

    try:
        owner = OwnerPath.parse(given.owner)
    except ValueError as error:
        raise Refusal(str(error)) from None

    def change(run: Run, _intake: Intake) -> Change:
        _refuse_terminal(run)
        funding = run.spec.funding
        if not funding.allow_borrow:
            show.warn([f"{run.subject}: sponsors pay nothing, since its funding.allowBorrow is false"])
        known = owner in funding.sponsors
        patch = {"spec": {"funding": {"sponsors": [str(each) for each in (*funding.sponsors, owner)]}}}
        return (None if known else patch), f"lists {owner} as a sponsor"

    return _change(options, given.run, change)


def _change(options: Options, name: str, change: Callable[[Run, Intake], Change]) -> int:
    """Reads, makes the patch of the run as it is now (None: nothing to do), writes it, and says so or prints it."""
    from jobtree.cluster.protocol import Ref, Write

    cluster = options.cluster()
    with cluster.hold():
        intake = cluster.read()
        run = lookup.find_run(intake, name, options.namespace)
        patch, word = change(run, intake)
        if patch is not None:
            cluster.write([Write("patch", Ref("Run", run.namespace, run.name), patch)], intake.revision)
    if options.output in {"json", "yaml"}:
        from exporters.plain import document

        show.data(document(lookup.find_run(cluster.read(), run.name, run.namespace)), options.output)
        return 0
    show.say(f"{run.subject} {word if patch is not None else 'unchanged'}")
    return 0


def _refuse_terminal(run: Run) -> None:
    if lookup.phase(run) in _TERMINAL:
        raise Refusal(f"{run.subject} is {lookup.phase(run)} already; submit it again under another name")
