"""`watch`: a run's block, again each time that its state changes; on a terminal, how long a promise has to go."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Self

from jobtree.api.kinds.run import OVER
from jobtree.api.values.counted import counted
from jobtree.cli.common import lookup, show
from jobtree.cli.common.args import Commands, Options, command

if TYPE_CHECKING:
    from jobtree.api import Run, Time
    from jobtree.world.reading.intake import Intake

PERIOD: Final = 1.0
"""Least seconds between two looks at the cluster."""
IDLE: Final = 9
"""Between two looks nothing is asked for so many times as long as one takes: a large cluster is hardly loaded by it."""
_ERASED: Final = "\r\x1b[K"
"""Takes a terminal back to the beginning of an empty line."""


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
    follows = not given.once and sys.stdout.isatty() and options.output not in {"json", "yaml"}
    before: list[str] = []
    with Countdown() as countdown:
        for intake in looks(options, countdown if follows else None):
            run = lookup.find_run(intake, given.run, options.namespace)
            if options.output in {"json", "yaml"}:
                from exporters.plans.plain import document

                show.data(document(run), options.output)
                return 0
            lines = block(run, intake)
            if lines != before:
                countdown.clear()
                show.say(*([""] if before else []), *lines)
                show.flush()
            before = lines
            if lookup.phase(run) in OVER:
                return 0
            countdown.start = run.status.earliest_start if options.at is None else None
    return 0


class Countdown:
    """The last line of a terminal: how long it is until ``start``. It goes when anything else is to be said."""

    def __init__(self) -> None:
        self.start: Time | None = None
        self._is_shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def show(self) -> None:
        """Says it as it is now; nothing where there is no start."""
        self.clear()
        if self.start is not None:
            left = int(self.start) - int(time.time())
            self._is_shown = True  # before it is: Ctrl-C may come as soon as it is read
            show.write(f"starts in {show.age(left)}" if left > 0 else "is due")
            show.flush()

    def clear(self) -> None:
        """Takes the line away."""
        if self._is_shown:
            show.write(_ERASED)
            show.flush()
            self._is_shown = False


def looks(options: Options, countdown: Countdown | None) -> Iterator[Intake]:
    """The cluster now, and, where a countdown is shown meanwhile, each time that it has changed."""
    revision = ""
    while True:
        began = time.monotonic()
        intake = options.intake()
        took = time.monotonic() - began
        if intake.revision != revision:
            yield intake
        revision = intake.revision
        if countdown is None:
            return
        next_look = time.monotonic() + max(PERIOD, IDLE * took)
        while (left := next_look - time.monotonic()) > 0:
            countdown.show()
            time.sleep(min(PERIOD, left))


def block(run: Run, intake: Intake) -> list[str]:
    """What the last cycles wrote of a run: its phase, width, place, payers and start."""
    from exporters.plans.nodelist import compress, natural
    from exporters.plans.summary import payer
    from jobtree.cli.fate.fate import NOBODY

    is_mine = lookup.holders(intake, (run.namespace, run.name))
    leases = [lease for lease in intake.leases if not lease.status.closed and is_mine(lease.run_key)]
    said = lookup.speaker(run)
    why = ": ".join(part for part in (said.reason, said.message) if part) if said else "no cycle has seen this run yet"
    lines = [f"run: {run.namespace}/{run.name}", f"phase: {lookup.phase(run)}", f"reason: {why}"]
    if not run.spec.resources.is_cpu:
        lines.append(f"width: {lookup.active_gpus(leases)} of {counted(lookup.wanted(run), 'GPU')}")
    if leases:
        lines.append(f"nodes: {compress(lease.spec.node for lease in leases)}")
        payers = {NOBODY if lookup.is_unfunded(lease) else payer(lease) for lease in leases}
        lines.append(f"payers: {', '.join(sorted(payers, key=natural))}")
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
