"""Where the two programs begin. Nothing is imported before signals are taken care of, so that they end them quietly."""

import signal
import sys
from types import FrameType

_INTERRUPTED = 130
"""Exit code of a program that SIGINT ended, as shells count."""


def kubectl_runs() -> int:
    """The program `kubectl-runs`; returns the exit code."""
    try:
        _end_in_order()
        from jobtree.cli.runs import main

        return main()
    except KeyboardInterrupt:
        return _INTERRUPTED


def jobtree() -> int:
    """The program `jobtree`; returns the exit code."""
    try:
        _end_in_order()
        from jobtree.cli.operator import main

        return main()
    except KeyboardInterrupt:
        return _INTERRUPTED


def _end_in_order() -> None:
    """SIGTERM and SIGHUP leave every block as an error would: no planner runs on, no line stays on the terminal."""
    for each in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(each) == signal.SIG_DFL:
            signal.signal(each, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)  # as shells count
