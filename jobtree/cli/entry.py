"""Where the two programs begin. Nothing is imported before signals are taken care of, so that they end them quietly."""

import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

_INTERRUPTED = 130
"""Exit code of a program that SIGINT ended, as shells count."""
_SOON = 0.01
"""Seconds after which a finalizer that a signal fell into is over."""


def kubectl_runs() -> int:
    """The program `kubectl-runs`; returns the exit code."""

    def begin() -> int:
        from jobtree.cli.plugin import main

        return main()

    return _run(begin)


def jobtree() -> int:
    """The program `jobtree`; returns the exit code."""

    def begin() -> int:
        from jobtree.cli.operator import main

        return main()

    return _run(begin)


def _run(begin: Callable[[], int]) -> int:
    try:
        _prepare()
        return begin()
    except KeyboardInterrupt as interrupt:
        for words in getattr(interrupt, "__notes__", ()):  # what was done before it
            sys.stderr.write(f"{words}\n")
        return _INTERRUPTED
    finally:
        from jobtree.world.collector import forget_circles

        forget_circles()


def _prepare() -> None:
    """SIGTERM and SIGHUP leave every block as an error would: no planner runs on, no line stays on the terminal.

    Where that is within a finalizer, whose errors Python only reports, the signal is taken once more after it.
    Whoever closed stderr does not want to hear, which is no reason to fail.
    """
    sys.unraisablehook = _report
    for each in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(each) == signal.SIG_DFL:
            signal.signal(each, _end)
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


def _end(number: int, _frame: FrameType | None) -> None:
    sys.exit(128 + number)  # as shells count


def _report(unraisable: "sys.UnraisableHookArgs") -> None:
    """Take a signal again that ended a finalizer alone; anything else is reported as ever."""
    number = getattr(unraisable.exc_value, "code", 0)
    if unraisable.exc_type is SystemExit and isinstance(number, int) and number > 128:
        import threading

        threading.Timer(_SOON, signal.pthread_kill, [threading.main_thread().ident, number - 128]).start()
    else:
        sys.__unraisablehook__(unraisable)
