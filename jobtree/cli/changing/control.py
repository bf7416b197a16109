"""Commands that change runs: `cancel`, `complete`, `suspend`, `resume` (several at once), `shrink`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from jobtree.api.values.counted import counted
from jobtree.api.values.errors import Refusal
from jobtree.cli.common import args, lookup, show
from jobtree.cli.common.args import Commands, Options, command

if TYPE_CHECKING:
    from jobtree.api import Run
    from jobtree.api.kinds.run import IndexRun
    from jobtree.world.reading.intake import Intake

T = TypeVar("T")
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
    from jobtree.api.kinds.run import IndexRun

    def made(run: Run, intake: Intake) -> Change:
        refuse_terminal(run)
        if run.spec.state == "Cancelled" != state:
            raise Refusal(f"{run.subject} {lookup.again(run)}")
        if isinstance(run, IndexRun):
            return _cancel_index(run, lookup.array_of(run, intake), state)
        return (None if run.spec.state == state else {"spec": {"state": state}}), word

    return change(options, names, made)


def _cancel_index(run: IndexRun, array: Run, state: str) -> Change:
    """Of one index, which only ever ends for itself: all else is its array's."""
    from jobtree.api.kinds.base import ANNOTATION_CANCELLED_INDICES
    from jobtree.world.naming import arrays

    if state != "Cancelled":
        verb = {"Suspended": "suspended", "Active": "resumed"}[state]
        raise Refusal(f"{run.subject} is an index of the array {run.of}; only the whole array can be {verb}")
    ended = _read(arrays.cancelled, array)
    text = {ANNOTATION_CANCELLED_INDICES: arrays.ranges(ended | {run.index})}
    return None if run.index in ended else {"metadata": {"annotations": text}}, "cancelled"


def _read(reader: Callable[[Run], T], array: Run) -> T:
    """What an annotation of an array says. Raises Refusal where it cannot be read."""
    try:
        return reader(array)
    except ValueError as error:
        raise Refusal(f"{array.subject} has an annotation that cannot be read: {error}; mend or remove it") from None


def _complete(options: Options, given: argparse.Namespace) -> int:
    from jobtree.api import ANNOTATION_COMPLETED, Time
    from jobtree.api.kinds.base import ANNOTATION_COMPLETED_INDICES
    from jobtree.api.kinds.run import IndexRun
    from jobtree.world.naming import arrays

    if options.cluster().runs_pods:
        raise Refusal(
            "complete is for state files only: on a cluster a run is complete once its pods have succeeded; "
            f"end it now with `kubectl runs cancel {given.run[0]}`"
        )

    def made(run: Run, intake: Intake) -> Change:
        refuse_terminal(run)
        if run.spec.array is not None:
            indices = arrays.ranges(i for i, each in arrays.known(run).items() if each.phase == "Running")
            raise Refusal(f"{run.subject} is an array; mark its indices one by one, {run.name}-{indices or 'INDEX'}")
        if lookup.phase(run) != "Running":
            raise Refusal(f"{run.subject} is {lookup.phase(run)}; only a Running run can be complete")
        now = str(Time(options.time))
        if isinstance(run, IndexRun):
            marked = _read(arrays.completed, lookup.array_of(run, intake)) | {run.index: Time(options.time)}
            text = {ANNOTATION_COMPLETED_INDICES: arrays.marks(marked)}
        else:
            text = {ANNOTATION_COMPLETED: now}
        return {"metadata": {"annotations": text}}, f"complete at {now}, from the next cycle on"

    return change(options, given.run, made)


def _shrink(options: Options, given: argparse.Namespace) -> int:
    def made(run: Run, intake: Intake) -> Change:
        refuse_index(run)
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

    ``make``: of a run and what is there, with what was made before; raises Refusal where the run cannot be changed so.
    """
    from jobtree.cluster.protocol import Ref, Write

    cluster = options.cluster()
    with cluster.hold():
        intake = options.intake(cluster)
        found = [lookup.find_run(intake, name, options.namespace) for name in names]
        runs = list({run.subject: run for run in found}.values())
        patches: dict[tuple[str, str], dict[str, Any]] = {}
        made = []
        for run in runs:
            key = lookup.object_key(run)
            patch, word = make(run, intake)
            made.append((run, patch, word))
            if patch is not None:
                patches[key] = {**patches.get(key, {}), **patch}
                intake = lookup.annotated(intake, key, patch)  # for the next index of the same array
        writes = [Write("patch", Ref("Run", *key), patch) for key, patch in patches.items()]
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


def refuse_index(run: Run) -> None:
    """Raises Refusal where the run is an index of an array, and so has no spec of its own."""
    from jobtree.api.kinds.run import IndexRun

    if isinstance(run, IndexRun):
        raise Refusal(f"{run.subject} is an index of an array; say the array, {run.of}")


def refuse_terminal(run: Run) -> None:
    """Raises Refusal where the run has come to its end."""
    from jobtree.api.kinds.run import OVER

    if lookup.phase(run) in OVER:
        raise Refusal(f"{run.subject} {lookup.again(run)}")
