"""`watch`: a run's block, again each time that its state changes."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from jobtree.api.counted import counted
from jobtree.cli import lookup, show
from jobtree.cli.args import Commands, Options, command

if TYPE_CHECKING:
    from jobtree.api import Run
    from jobtree.world.intake import Intake

PERIOD: Final = 1.0
"""Seconds between two looks at the file."""


def add(commands: Commands) -> None:
    """Declares the command."""
    watch = command(
        commands,
        "watch",
        _watch,
        "show a run's width, place and payers, and follow them on a terminal",
        example="kubectl runs --state cluster.yaml watch resnet-small",
    )
    watch.add_argument("run", metavar="RUN")
    watch.add_argument("--once", action="store_true", help="print it once, also on a terminal")


def _watch(options: Options, given: argparse.Namespace) -> int:
    before: list[str] = []
    for intake in _looks(options, once=given.once or not sys.stdout.isatty()):
        run = lookup.find_run(intake, given.run, options.namespace)
        if options.output in {"json", "yaml"}:
            from exporters.plain import document

            show.data(document(run), options.output)
            return 0
        lines = _block(run, intake)
        if lines != before:
            show.say(*([""] if before else []), *lines)
            show.flush()
        before = lines
        if lookup.phase(run) in {"Completed", "Failed"}:
            return 0
    return 0


def _looks(options: Options, *, once: bool) -> Iterator[Intake]:
    """The cluster now, and then each time that it has changed."""
    revision = ""
    while True:
        intake = options.cluster().read()
        if intake.revision != revision:
            yield intake
        revision = intake.revision
        if once:
            return
        time.sleep(PERIOD)


def _block(run: Run, intake: Intake) -> list[str]:
    from exporters.nodelist import compress, natural
    from exporters.summary import payer

    leases = lookup.open_leases(intake.leases).get((run.namespace, run.name), [])
    said = lookup.speaker(run)
    why = ": ".join(part for part in (said.reason, said.message) if part) if said else "no cycle has seen this run yet"
    lines = [f"run: {run.namespace}/{run.name}", f"phase: {lookup.phase(run)}", f"reason: {why}"]
    if not run.spec.resources.is_cpu:
        lines.append(f"width: {lookup.active_gpus(leases)} of {counted(lookup.wanted(run), 'GPU')}")
    if leases:
        lines.append(f"nodes: {compress(lease.spec.node for lease in leases)}")
        lines.append(f"payers: {', '.join(sorted({payer(lease) for lease in leases}, key=natural))}")
    if gpus := lookup.unfunded_gpus(leases):
        lines.append(f"unfunded: {gpus} of {counted(lookup.active_gpus(leases), 'GPU')}")
    if run.status.earliest_start is not None:
        by = f" (reservation {run.status.reservation})" if run.status.reservation else ""
        lines.append(f"earliestStart: {run.status.earliest_start}{by}")
    elif run.status.eta is not None:
        lines.append(f"eta: {run.status.eta.p50}")
    if run.status.kill_probability:
        lines.append(f"killProbability: {run.status.kill_probability} for {', '.join(run.status.conflict_sets)}")
    return lines
