"""What is going on while a plan is made: a line on a terminal's stderr, nothing anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def shown() -> Iterator[Callable[[str], None]]:
    """What is called with the words of each phase as it begins. The line has a clock, and goes in the end."""
    if not sys.stderr.isatty():
        yield _silent
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as line:
        task = line.add_task("start", total=None)
        yield lambda words: line.update(task, description=words, refresh=True)


def _silent(_words: str) -> None:
    """Nobody looks."""
