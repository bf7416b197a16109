"""Commands that change runs: `cancel`, `complete`, `suspend`, `resume` (several at once), `shrink`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from jobtree.api.values.counted import counted
from jobtree.api.values.errors import Refusal
from jobtree.cli.common import args, lookup, show
from jobtree.cli.common.args import Commands, Options, command

if TYPE_CHECKING:
    from jobtree.api import Run
    from jobtree.world.reading.intake import Intake

Change = tuple[dict[str, Any] | None, str]
"""A merge patch of the run (None: nothing to do), and what it does to it."""


def add(commands: Commands) -> None:
    """Declares the commands."""
    for name, handler, summary in (
        ("cancel", _cancel, "end runs for good, all that are named or none"),
        ("suspend", _suspend, "take runs off their GPUs until they are resumed, all or none"),
        ("resume", _resume, "let suspended runs wait for GPUs again, all or none"),
        ("complete", _complete, "mark runs complete, all or none (state files only, where no pods can say so)"),
    ):
        parser = command(commands, name, handler, summary, example=f"kubectl runs --state cluster.yaml {name} train-32")
        parser.add_argument("run", nargs="+", metavar="RUN")
    shrink = command(
        commands,
        "shrink",
        _shrink,
        "lower the width that a malleable run wants",
        example="kubectl runs --state cluster.yaml shrink trainer-128 --by 32",
    )
    shrink.add_argument("run", metavar="RUN")
    shrink.add_argument("--by", type=args.count, required=True, metavar="N", help="GPUs fewer than it holds now")


def _cancel(options: Options, given: argparse.Namespace) -> int:
    return _set_state(options, given.run, "Cancelled", "cancelled")


def _suspend(options: Options, given: argparse.Namespace) -> int:
    return _set_state(options, given.run, "Suspended", "suspended")


def _resume(options: Options, given: argparse.Namespace) -> int:
    return _set_state(options, given.run, "Active", "resumed")


def _set_state(options: Options, names: Sequence[str], state: str, word: str) -> int:
    def made(run: Run, _intake: Intake) -> Change:
        refuse_terminal(run)
        return (None if run.spec.state == state else {"spec": {"state": state}}), word

    return change(options, names, made)


def _complete(options: Options, given: argparse.Namespace) -> int:
    from jobtree.api import ANNOTATION_COMPLETED, Time

    def made(run: Run, _intake: Intake) -> Change:
        refuse_terminal(run)
        if lookup.phase(run) != "Running":
            raise Refusal(f"{run.subject} is {lookup.phase(run)}; only a Running run can be complete")
        now = str(Time(options.time))
        return {"metadata": {"annotations": {ANNOTATION_COMPLETED: now}}}, f"complete at {now}, from the next cycle on"

    return change(options, given.run, made)


def _shrink(options: Options, given: argparse.Namespace) -> int:
    def made(run: Run, intake: Intake) -> Change:
        malleable = run.spec.malleable
        if malleable is None:
            raise Refusal(f"{run.subject} has a fixed width; only a run with spec.malleable can shrink")
        held = lookup.open_leases(intake.leases).get((run.namespace, run.name), [])
        width = lookup.active_gpus(held)
        desired, floor, step = width - given.by, malleable.min_total_gpus, malleable.step_gpus
        if desired < floor or (desired - floor) % step:
            raise Refusal(
                f"{run.subject} cannot shrink by {given.by}: it holds {counted(width, 'GPU')}, "
                f"and allowed are steps of {step} down to {floor}"
            )
        return {
            "spec": {"malleable": {"desiredTotalGPUs": desired}}
        }, f"wants {desired} GPUs from now on: the next cycle takes {given.by} of its {width}"

    return change(options, [given.run], made)


def change(options: Options, names: Sequence[str], make: Callable[[Run, Intake], Change]) -> int:
    """Reads, makes the patch of each run as it is now, writes all of them or none, and says so or prints them.

    ``make``: raises Refusal where the run cannot be changed so.
    """
    from jobtree.cluster.protocol import Ref, Write

    cluster = options.cluster()
    with cluster.hold():
        intake = cluster.read()
        found = [lookup.find_run(intake, name, options.namespace) for name in names]
        runs = list({run.subject: run for run in found}.values())
        made = [(run, *make(run, intake)) for run in runs]
        writes = [
            Write("patch", Ref("Run", run.namespace, run.name), patch) for run, patch, _ in made if patch is not None
        ]
        if writes:
            cluster.write(writes, intake.revision)
    if options.output in {"json", "yaml"}:
        from exporters.plans.plain import document

        after = cluster.read()
        shown = [document(lookup.find_run(after, run.name, run.namespace)) for run in runs]
        show.data(shown[0] if len(names) == 1 else show.listing(shown), options.output)
        return 0
    show.say(*(f"{run.subject} {word if patch is not None else 'unchanged'}" for run, patch, word in made))
    return 0


def refuse_terminal(run: Run) -> None:
    """Raises Refusal where the run has come to its end."""
    if lookup.phase(run) in lookup.TERMINAL:
        raise Refusal(f"{run.subject} is {lookup.phase(run)} already; submit it again under another name")
