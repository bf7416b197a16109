"""What runs beside the cycles: `jobtree metrics`, and `jobtree nightly`."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from typing import Final

from jobtree.api.values.errors import Refusal
from jobtree.cli.common import args, lakes, show
from jobtree.cli.common.args import Commands, Options, command

REPORTS: Final = ("chargeback", "usage", "utilisation", "waits", "bottlenecks")
"""The reports that a night makes where it is told no others."""
_NIGHT: Final = 12 * 3600
"""Seconds into a month in which its reports are still of the one before, which is over."""


def add(commands: Commands) -> None:
    """Declares both commands."""
    summary = "print the last cycle's metrics, or serve them"
    metrics = command(
        commands, "metrics", _metrics, summary, takes=("state",), example="jobtree metrics --lake lake --port 9464"
    )
    metrics.add_argument("--lake", metavar="DIR", help=args.LAKE)
    metrics.add_argument("--port", type=args.port, metavar="PORT", help="serve them here, with each new cycle")
    summary = "compact the lake's days that are over, and write the month's reports into its folder reports"
    example = "jobtree nightly --lake lake chargeback waits"
    nightly = command(commands, "nightly", _nightly, summary, takes=("state", "at"), example=example)
    nightly.add_argument("--lake", metavar="DIR", help=args.LAKE)
    nightly.add_argument("reports", nargs="*", metavar="REPORT", help=f"default: {' '.join(REPORTS)}")


def _metrics(options: Options, given: argparse.Namespace) -> int:
    try:
        from exporters.monitoring.metrics import Exposition, serve
    except ModuleNotFoundError as error:
        raise Refusal(f"metrics need {error.name}, which is missing; install the wheel with [live]") from None
    lake = lakes.there(options, given.lake) if given.port is None else lakes.named(options, given.lake)
    lake.refuse_stranger()
    exposition = Exposition(lake)
    if given.port is not None:  # until the first cycle there is nothing to serve, and that is no fault
        serve(exposition, given.port, lambda words: show.warn([words]))
    if not exposition.look():
        raise Refusal(f"the lake {lake.root} has no cycle that was carried out; run `jobtree cycle` first")
    show.write(exposition.text())
    return 0


def _nightly(options: Options, given: argparse.Namespace) -> int:
    """The days that are over first: reports then read them from a few files."""
    lake = lakes.there(options, given.lake)
    lakes.compact(lake)
    try:
        from reports.output import FORMATS
        from reports.query import Asked, made
        from reports.read import definition
    except ModuleNotFoundError as error:
        raise Refusal(f"reports need {error.name}, which is missing; install the wheel with [reports]") from None
    month = datetime.fromtimestamp(options.time - _NIGHT, UTC).replace(day=1, hour=0, minute=0, second=0)
    end = int((month + timedelta(days=31)).replace(day=1).timestamp())
    asked = Asked(int(month.timestamp()), end if end <= options.time else None, {}, None, tell=True)
    wrong = []
    for name in given.reports or REPORTS:
        definition.load(name)  # a name that is wrong is said before the others are made
    for name in given.reports or REPORTS:
        report = made(lake.root, name, asked)
        show.warn(f"{subject}: {message}" for subject, message in report.troubles)
        wrong += [f"the report {name}: {each.sentence()}" for each in report.outcomes if not each.agrees]
        place = lake.root / "reports" / f"{month:%Y-%m}"
        for kind in ("html", "csv"):
            lake.put(place / f"{name}.{kind}", FORMATS[kind](report).encode())
        show.say(f"{place / name}.html and .csv")
    if wrong:
        raise Refusal("; ".join(wrong))
    return 0
