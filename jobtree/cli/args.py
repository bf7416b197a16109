"""What every command shares: global options (before or after the subcommand), exit codes, and one sentence on errors.

Exit codes (spec §10): 0 ok; 1 refused or failed, with one sentence on stderr; 2 usage.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from jobtree import __version__
from jobtree.api.errors import Refusal
from jobtree.cli import show

if TYPE_CHECKING:
    from cronjobs.deadline import Planner
    from jobtree.cluster.statefile import StateFile

Output = Literal["table", "wide", "json", "yaml"]
Handler = Callable[["Options", argparse.Namespace], int]
Commands = Any  # argparse keeps the class of subparsers private


@dataclass(frozen=True)
class Options:
    """The global options as given. ``at``: Unix seconds, None = now."""

    program: str
    state: Path | None = None
    namespace: str | None = None
    output: Output = "table"
    at: int | None = None

    @property
    def time(self) -> int:
        """The time that the command is asked for: ``--at``, else now in whole seconds."""
        import time

        return int(time.time()) if self.at is None else self.at

    def cluster(self, *, create: bool = False, at: int | None = None) -> StateFile:
        """The cluster that ``--state`` names, at ``at`` (default: `time`). Raises Refusal where none is named.

        With ``create`` a missing file is an empty cluster.
        """
        if self.state is None:
            raise Refusal(
                f"no cluster is named: this version works on state files only, so say `{self.program} --state FILE ...`"
            )
        from jobtree.cluster.statefile import StateFile

        return StateFile(self.state, self.time if at is None else at, create=create)


def program(name: str, description: str, *, takes: Sequence[str]) -> tuple[argparse.ArgumentParser, Commands]:
    """The parser of a whole command line, and where its subcommands are declared; ``takes``: its global options."""
    parser = argparse.ArgumentParser(prog=name, parents=[_shared(takes)], description=description, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"{name} {__version__}", help="print the version")
    return parser, parser.add_subparsers(title="commands", metavar="COMMAND", required=True)


def _shared(takes: Sequence[str]) -> argparse.ArgumentParser:
    """Global options as a parent of other parsers; an option that is not given leaves no trace."""
    parser = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    group = parser.add_argument_group("global options")
    for name in takes:
        flags, fields = GLOBAL[name]
        group.add_argument(*flags, **fields)
    return parser


def moment(text: str) -> int:
    """argparse type: a time such as 2026-01-01T00:00:00Z, as Unix seconds."""
    from jobtree.api.scalars import Time

    return int(_scalar(Time.parse, text))


def day(text: str) -> int:
    """argparse type: a day such as 2026-01-01, which is its first second (UTC), or a time, as Unix seconds."""
    return moment(f"{text}T00:00:00Z" if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text) else text)


def span(text: str) -> int:
    """argparse type: a duration such as 10s, longer than nothing, as seconds."""
    from jobtree.api.scalars import Duration

    seconds = int(_scalar(Duration.parse, text))
    if seconds == 0:
        raise argparse.ArgumentTypeError(f"{text} is no time at all; allowed is a duration such as 10s")
    return seconds


def count(text: str) -> int:
    """argparse type: a whole number above zero."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no number; allowed is a whole number above 0")
    return int(text)


def _scalar(parse: Callable[[object], int], text: str) -> int:
    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


LAKE: Final = "the lake: a folder, or an fsspec URL such as s3://BUCKET/PATH (default: lake beside the state file)"
"""The help of ``--lake``."""
GLOBAL: Final[dict[str, tuple[list[str], dict[str, Any]]]] = {
    "state": (["--state"], {"type": Path, "metavar": "FILE", "help": "work on this state file"}),
    "namespace": (["-n", "--namespace"], {"metavar": "NAME", "help": "namespace (default: default)"}),
    "output": (
        ["-o", "--output"],
        {
            "choices": ("table", "wide", "json", "yaml"),
            "metavar": "FORMAT",
            "help": "table (default), wide, json, yaml",
        },
    ),
    "at": (
        ["--at"],
        {"type": moment, "metavar": "TIME", "help": "the time to answer for (default: now)"},
    ),
}
"""The global options: by name, their flags and what argparse is to know of them."""


def command(
    commands: Commands,
    name: str,
    handler: Handler,
    summary: str,
    *,
    example: str = "",
    takes: Sequence[str] = tuple(GLOBAL),
) -> argparse.ArgumentParser:
    """Declares a subcommand; ``example`` is shown below its help, ``takes`` are the global options that it heeds."""
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        parents=[_shared(takes)],
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"example:\n  {example}" if example else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.set_defaults(handler=handler, command=name, takes=takes)
    return parser


def start_planner() -> Planner:
    """This program's planner process, started: its imports overlap with what the command loads and reads meanwhile."""
    from cronjobs.deadline import planner

    planner().start()
    return planner()


class UsageError(Exception):
    """Options that do not go together: exit code 2, as for every misuse of the command line."""


def run(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> int:
    """Parses, calls the subcommand's handler, and turns a refusal into one sentence on stderr and exit code 1."""
    try:
        try:
            code = _called(parser, argv)
        finally:
            show.flush()  # what cannot be written is to be known here, not when Python ends
    except Refusal as refusal:
        show.complain(f"error: {' '.join(str(refusal).split())}")
        return 1
    except BrokenPipeError:
        show.discard()  # the reader went away (`| head`): that is no failure
        return 0
    return code


def _called(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> int:
    given = parser.parse_args(argv)
    for name in GLOBAL:
        if hasattr(given, name) and name not in given.takes:
            parser.error(f"{GLOBAL[name][0][-1]} means nothing to `{given.command}`; leave it out")
    options = Options(
        program=parser.prog,
        state=getattr(given, "state", None),
        namespace=getattr(given, "namespace", None),
        output=getattr(given, "output", "table"),
        at=getattr(given, "at", None),
    )
    try:
        return int(given.handler(options, given))
    except UsageError as error:
        parser.error(str(error))
