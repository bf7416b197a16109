"""What every command shares: global options (before or after the subcommand), exit codes, and one sentence on errors.

Exit codes (spec §10): 0 ok; 1 refused or failed, with one sentence on stderr; 2 usage.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn

from jobtree import __version__
from jobtree.api.values.errors import Refusal, Refusals
from jobtree.api.values.escaped import escaped
from jobtree.api.values.nearest import did_you_mean
from jobtree.cli.common import show, synonyms

if TYPE_CHECKING:
    from cronjobs.deadline import Planner
    from jobtree.cluster.protocol import Cluster
    from jobtree.world.reading.intake import Intake

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
    context: str | None = None

    @property
    def time(self) -> int:
        """The time that the command is asked for: ``--at``, else now in whole seconds."""
        import time

        return int(time.time()) if self.at is None else self.at

    @property
    def reach(self) -> str:
        """The options that name the cluster, for a command that is to be typed: empty, or with a blank after them."""
        if self.state is not None:
            return f"--state {shlex.quote(str(self.state))} "
        return "" if self.context is None else f"--context {shlex.quote(self.context)} "

    def cluster(self, *, create: bool = False, at: int | None = None, planning: bool = False) -> Cluster:
        """The file that ``--state`` names, else the live cluster that kubectl would use, at ``at`` (default: `time`).

        With ``create`` a missing file is an empty cluster; ``planning``: where it is live, one planner at a time.
        Raises Refusal where there is none.
        """
        if self.state is None:
            from jobtree.cluster.live import connect

            if self.at is not None:
                raise UsageError("--at goes with --state FILE: the time of a live cluster is its own")
            return connect(self.context, self.time if at is None else at, planning=planning, namespace=self.namespace)
        if self.context is not None:
            raise UsageError("--context names a live cluster, and --state FILE another one; say one of them")
        from jobtree.cluster.statefile import StateFile

        return StateFile(self.state, self.time if at is None else at, create=create)

    def intake(self, cluster: Cluster | None = None) -> Intake:
        """What a cluster (default: `cluster`) holds, to be shown or changed as of `time`.

        Raises Refusal too where ``--at`` is before its last cycle. Without ``--at`` that is no fault: the clock here
        may be behind the cluster's.
        """
        intake = (cluster or self.cluster()).read()
        if self.at is not None:
            intake.refuse_past(self.at, "--at asks")
        return intake


def program(name: str, description: str, *, takes: tuple[str, ...]) -> tuple[argparse.ArgumentParser, Commands]:
    """The parser of a whole command line, and where its subcommands are declared; ``takes``: its global options."""
    parser = _Parser(prog=name, parents=[_shared(takes)], description=description, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"{name} {__version__}", help="print the version")
    return parser, choice(parser)


def choice(parser: argparse.ArgumentParser) -> Commands:
    """Where the commands below a parser are declared; without one of them it lists them, as misuse."""
    parser.set_defaults(handler=None, command="", takes=(), parser=parser)
    return parser.add_subparsers(title="commands", metavar="COMMAND")


def group(commands: Commands, name: str, summary: str) -> Commands:
    """Declares a command of two words, such as `budgets usage`, and where its second words are declared."""
    return choice(commands.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}."))


class _Parser(argparse.ArgumentParser):
    """Says what is misused as `escaped` shows it; subcommands' parsers are of this class too."""

    def error(self, message: str) -> NoReturn:
        super().error(escaped(message))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """As argparse, but a command or a choice that is misspelt, or called as elsewhere, is asked for by its name."""
        known = [*map(str, action.choices or ())]
        if known and value not in known:
            meant = synonyms.command_for(str(value), known) if action.nargs == argparse.PARSER else None
            hint = f"; did you mean {meant}?" if meant else did_you_mean(str(value), known, 0.6)
            if hint:
                raise argparse.ArgumentError(action, f"invalid choice: {value!r}{hint}")
        super()._check_value(action, value)


@cache
def _shared(takes: tuple[str, ...]) -> argparse.ArgumentParser:
    """Global options as a parent of other parsers; an option that is not given leaves no trace."""
    parser = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    group = parser.add_argument_group("global options")
    for name in takes:
        flags, fields = GLOBAL[name]
        group.add_argument(*flags, **fields)
    return parser


def moment(text: str) -> int:
    """argparse type: a time such as 2026-01-01T00:00:00Z, a day, or a local time with its zone, as Unix seconds."""
    from jobtree.cli.common import moments

    return _scalar(moments.moment, text)


def span(text: str) -> int:
    """argparse type: a duration such as 10s, longer than nothing, as seconds."""
    from jobtree.api.values.scalars import Duration

    if text.isascii() and text.isdigit():
        raise argparse.ArgumentTypeError(f"{text} says no unit; allowed is {text}s, {text}m or {text}h")
    seconds = int(_scalar(Duration.parse, text))
    if seconds == 0:
        raise argparse.ArgumentTypeError(f"{text} is no time at all; allowed is a duration such as 10s")
    return seconds


def count(text: str) -> int:
    """argparse type: a whole number above zero."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no number; allowed is a whole number above 0")
    return int(text)


def port(text: str) -> int:
    """argparse type: a TCP port."""
    if not (text.isascii() and text.isdigit() and len(text) <= 5 and 0 < int(text) < 1 << 16):
        raise argparse.ArgumentTypeError(f"{text!r} is no port; allowed is a whole number from 1 to 65535")
    return int(text)


def _scalar(parse: Callable[[str], int], text: str) -> int:
    try:
        return parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


VARIABLES: Final = ("KUBECTL_RUNS_STATE", "JOBTREE_STATE")
"""Environment variables that name the state file where ``--state`` does not; the first that says something holds."""
LAKE: Final = "the lake: a folder, or an fsspec URL such as s3://BUCKET/PATH (default: FILE.lake beside the state file)"
"""The help of ``--lake``."""
GLOBAL: Final[dict[str, tuple[list[str], dict[str, Any]]]] = {
    "state": (
        ["--state"],
        {
            "type": Path,
            "metavar": "FILE",
            "help": f"work on this state file (default: ${VARIABLES[0]}, else ${VARIABLES[1]})",
        },
    ),
    "context": (["--context"], {"metavar": "NAME", "help": "the kubeconfig's context of a live cluster"}),
    "namespace": (["-n", "--namespace"], {"metavar": "NAME", "help": "namespace (default: the context's)"}),
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
        {
            "type": moment,
            "metavar": "TIME",
            "help": "the time to answer for: 2026-01-01T00:00:00Z, a day, or with a zone (default: now)",
        },
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
    takes: tuple[str, ...] = tuple(GLOBAL),
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
    parser.set_defaults(handler=handler, command=name, takes=takes, parser=parser)
    return parser


def everywhere(parser: argparse._ActionsContainer) -> None:
    """Declares ``-A``, as kubectl has it, of a command that lists what lies in namespaces."""
    parser.add_argument("-A", "--all-namespaces", dest="all", action="store_true", help="in every namespace")


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
        for each in refusal.each if isinstance(refusal, Refusals) else (refusal,):
            show.complain(f"error: {' '.join(str(each).split())}")
        return 1
    except BrokenPipeError:
        show.discard()  # the reader went away (`| head`): that is no failure
        return 0
    return code


def _called(parser: argparse.ArgumentParser, argv: Sequence[str] | None) -> int:
    words = sys.argv[1:] if argv is None else list(argv)
    if unknown := _leading_unknown(parser, words):  # its value would be taken for the command
        parser.error(f"unrecognized arguments: {unknown}{_meant(parser, [unknown])}")
    given, stray = parser.parse_known_args(words)
    own: argparse.ArgumentParser = given.parser
    if stray:
        own.error(f"unrecognized arguments: {' '.join(stray)}{_meant(own, stray)}")
    if given.handler is None:
        for line in own.format_help().splitlines():
            show.complain(line)
        return 2
    for name in GLOBAL:
        if hasattr(given, name) and name not in given.takes:
            own.error(f"{GLOBAL[name][0][-1]} means nothing to `{given.command}`; leave it out")
    _refuse_empty(own, given)
    options = Options(
        program=parser.prog,
        state=getattr(given, "state", named_state(given)),
        namespace=getattr(given, "namespace", None),
        output=getattr(given, "output", "table"),
        at=getattr(given, "at", None),
        context=getattr(given, "context", None),
    )
    try:
        return int(given.handler(options, given))
    except UsageError as error:
        own.error(str(error))


def _refuse_empty(parser: argparse.ArgumentParser, given: argparse.Namespace) -> None:
    """Raises Refusal where an argument of the command is empty, as ``"$RUN"`` is in a shell that knows no RUN."""
    for action in parser._actions:
        value = getattr(given, action.dest, None)
        if action.dest not in GLOBAL and "" in (value if isinstance(value, list) else [value]):
            said = action.option_strings[-1] if action.option_strings else str(action.metavar)
            raise Refusal(f"{said} is empty; say which" + ("" if action.required else ", or leave it out"))


def _leading_unknown(parser: argparse.ArgumentParser, words: Sequence[str]) -> str:
    """The first option before the command that the parser does not know; empty where it knows all of them."""
    known = parser._option_string_actions
    rest = iter(words)
    for word in rest:
        name, equals, _ = word.partition("=")
        if not name.startswith("--") or name == "--":
            if name.startswith("-") and name in known and known[name].nargs is None:
                next(rest, None)  # its value
                continue
            return ""
        if name not in known:
            return name
        if not equals and known[name].nargs is None:
            next(rest, None)
    return ""


def _meant(parser: argparse.ArgumentParser, words: Sequence[str]) -> str:
    """The end of a sentence: the option that the first mistyped one of the words was probably meant to be."""
    known = parser._option_string_actions
    forms = [f"--{each}" for each in known["-o"].choices or ()] if "-o" in known else []
    if form := next((word for word in words if word in forms), ""):
        return f"; did you mean -o {form[2:]}?"
    options = [name for name in known if name.startswith("--")]
    found = (did_you_mean(word.partition("=")[0], options, 0.75) for word in words if word.startswith("--"))
    return next((hint for hint in found if hint), "")


def named_state(given: argparse.Namespace) -> Path | None:
    """The state file that the environment names; None too for a command of none, or where a context names a cluster."""
    if "state" not in given.takes or hasattr(given, "context"):
        return None
    return next((Path(name) for each in VARIABLES if (name := os.environ.get(each))), None)
