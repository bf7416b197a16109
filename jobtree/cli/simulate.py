"""`jobtree simulate`: a stream of jobs under Jobtree and its rivals, in virtual time."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from jobtree.api.values.errors import Refusal
from jobtree.api.values.scalars import Time
from jobtree.cli.common import args, files, show
from jobtree.cli.common.args import Commands, Options, command

if TYPE_CHECKING:
    from simulator.stream import Stream


def add(commands: Commands) -> None:
    """Declares the command."""
    parser = command(
        commands, "simulate", _simulate, "run a stream of jobs in virtual time, beside other schedulers", takes=(),
        example="jobtree simulate examples/philly-hours --compare --page philly.html",
    )  # fmt: skip
    parser.add_argument(
        "stream", type=Path, metavar="STREAM", help="a stream, or a folder with stream.jsonl and base.json"
    )
    parser.add_argument(
        "--base", type=Path, metavar="FILE", help="the state it begins with (default: base.json beside it)"
    )
    parser.add_argument("--policy", type=Path, metavar="FILE", help="the Policy to plan by (default: the base's)")
    parser.add_argument(
        "--every", type=args.span, default=300, metavar="SPAN", help="a cycle at most so often (default 5m)"
    )
    parser.add_argument("--until", type=args.moment, metavar="TIME", help="stop there (default: the stream's end)")
    parser.add_argument("--compare", action="store_true", help="the rivals too: FIFO, EASY, conservative, Kueue")
    parser.add_argument(
        "--scheduler", dest="schedulers", action="append", metavar="NAME", help="only this one; may be given again"
    )
    parser.add_argument("--lake", metavar="DIR", help="where all of it goes (default: NAME.lake here)")
    parser.add_argument("--page", type=Path, metavar="FILE", help="write a page with charts")
    parser.add_argument("--no-cycles", action="store_true", help="keep the results alone, not Jobtree's cycles")
    parser.add_argument("--resume", action="store_true", help="go on with a run that was ended before its end")


def _simulate(_options: Options, given: argparse.Namespace) -> int:
    try:
        from simulator import results, study
    except ModuleNotFoundError as error:
        raise Refusal(f"simulations need {error.name}, which is missing; install the wheel with [reports]") from None
    from exporters.lake.lake import Lake
    from exporters.plans.summary import table
    from simulator.stream import load

    wanted = given.schedulers or (study.SCHEDULERS if given.compare else (study.OWN,))
    unknown = [name for name in wanted if name not in study.SCHEDULERS]
    if unknown:
        raise args.UsageError(f"--scheduler {unknown[0]} is none; allowed are {', '.join(study.SCHEDULERS)}")
    stream = load(given.stream, given.base, given.policy)
    if given.until is not None:
        if given.until <= stream.start:
            raise Refusal(f"--until {Time(given.until)} leaves nothing of it; it begins at {Time(stream.start)}",
                          subject=stream.name)  # fmt: skip
        stream = stream._replace(end=given.until if stream.end is None else min(given.until, stream.end))
    lake = Lake(given.lake or f"{stream.name}.lake", stream.name, lasting=False)
    found = []
    for name in wanted:
        with _bar(stream, name) as on_turn:
            found.append(study.study(
                stream, name, lake, given.every, resume=given.resume, cycles=not given.no_cycles, on_turn=on_turn
            ))  # fmt: skip
    show.say(*table(("SCHEDULER", *(name.upper() for name in results.COLUMNS)), results.rows(found)))
    show.say(f"Results: {lake.root / 'simulation'}")
    if given.page is not None:
        files.write_text(given.page, results.page(stream.name, found))
        show.say(f"Page: {given.page}")
    return 0


@contextmanager
def _bar(stream: Stream, name: str) -> Iterator[Callable[[int], None] | None]:
    """A bar on a terminal's stderr, of the virtual time that has passed; nothing anywhere else."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    end = stream.end if stream.end is not None else int(stream.lines[-1].at) if stream.lines else stream.start
    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=end - stream.start)
        yield lambda at: bar.update(task, completed=at - stream.start)
