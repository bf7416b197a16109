"""`jobtree report`: a report over the lake, for finance and operations (spec §11)."""

from __future__ import annotations

import argparse
from typing import Final

from jobtree.api.values.errors import Refusal
from jobtree.cli.common import args, lakes, show
from jobtree.cli.common.args import Commands, Options, command

FORMATS: Final = ("table", "csv", "json", "html", "sql")


def add(commands: Commands) -> None:
    """Declares the command."""
    report = command(
        commands,
        "report",
        _report,
        "report what the lake knows: money, use, waits",
        takes=("state",),
        example="jobtree --state cluster.yaml report chargeback --since 2026-01-01 --until 2026-02-01 -o csv",
    )
    report.add_argument(
        "report",
        nargs="?",
        metavar="NAME",
        help="its name, or the file of your own SQL, as mine.sql (default: list them)",
    )
    report.add_argument("--lake", metavar="DIR", help=args.LAKE)
    report.add_argument("--since", type=args.moment, metavar="TIME", help="from this day or time on (default: all)")
    report.add_argument("--until", type=args.moment, metavar="TIME", help="up to this day or time, itself left out")
    report.add_argument(
        "--owner", metavar="OWNER", help="only of OWNER and its descendants; OWNER:* is its descendants alone"
    )
    report.add_argument(
        "--set", dest="settings", action="append", default=[], metavar="NAME=VALUE", help="a setting of the report"
    )
    report.add_argument(
        "-o", "--output", dest="format", choices=FORMATS, default="table", metavar="FORMAT",
        help="table (default), csv, json, html; sql prints the report's own SQL, to change",
    )  # fmt: skip


def _report(options: Options, given: argparse.Namespace) -> int:
    from reports.read import definition

    if given.report is None:
        from exporters.plans.summary import table

        found = [definition.load(name) for name in definition.names()]
        show.say(*table(("REPORT", "SHOWS"), [(each.name, each.summary) for each in found]))
        return 0
    if given.format == "sql":
        show.write(definition.load(given.report).text)
        return 0
    try:
        from reports.output import FORMATS as WRITERS
        from reports.query import Asked, made
    except ModuleNotFoundError as error:
        raise Refusal(f"reports need {error.name}, which is missing; install the wheel with [reports]") from None

    asked = Asked(
        given.since, given.until, _settings(given.settings), given.owner, tell=given.format in {"table", "html"}
    )
    report = made(lakes.there(options, given.lake).root, given.report, asked)
    show.warn(f"{subject}: {message}" for subject, message in report.troubles)
    for outcome in report.outcomes:
        if not outcome.agrees:
            raise Refusal(f"the report {report.definition.name}: {outcome.sentence()}")
    show.write(WRITERS[given.format](report))
    return 0


def _settings(given: list[str]) -> dict[str, str]:
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (equals and name.isidentifier()):
            raise args.UsageError(f"--set {text} is no setting; allowed is NAME=VALUE, as --set currency=USD")
        found[name] = value
    return found
