"""The command lines, called in this process: what they print and how they exit."""

import contextlib
import io
import os
import pty
import selectors
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from unittest.mock import patch

from jobtree.cli.operator import main as operator_main
from jobtree.cli.plugin import main as runs_main


@dataclass(frozen=True)
class Output:
    """What a command did."""

    code: int
    out: str
    err: str

    def ok(self) -> "Output":
        """The same, when it exited 0."""
        assert self.code == 0, self.err
        return self

    def refused(self) -> str:
        """Its one sentence, when it exited 1."""
        assert (self.code, self.out) == (1, ""), f"exit {self.code}\n{self.out}{self.err}"
        assert self.err.count("\n") == 1, self.err
        return self.err.removesuffix("\n")


def kubectl_runs(*args: str | Path, stdin: str = "") -> Output:
    """``kubectl-runs ARGS``."""
    return _call(runs_main, args, stdin)


def jobtree(*args: str | Path, typed: str | None = None) -> Output:
    """``jobtree ARGS``; with ``typed`` on a terminal, where that is typed."""
    if typed is None:
        return _call(operator_main, args, "")
    with _terminal(typed) as terminal:
        return _call(operator_main, args, terminal)


@contextlib.contextmanager
def _terminal(typed: str) -> Iterator[io.TextIOBase]:
    ours, theirs = pty.openpty()
    os.write(ours, typed.encode())
    with os.fdopen(ours), os.fdopen(theirs) as terminal:
        yield terminal


def wait_readable(file: int | socket.socket, seconds: float) -> bool:
    """Does a real program's terminal, pipe or socket have something to read within ``seconds``?"""
    with selectors.DefaultSelector() as selector:
        selector.register(file, selectors.EVENT_READ)
        return bool(selector.select(seconds))


def _call(main: Callable[[Sequence[str]], int], args: Sequence[str | Path], stdin: str | io.TextIOBase) -> Output:
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())) if isinstance(stdin, str) else stdin),
    ):
        try:
            code = main([str(arg) for arg in args])
        except SystemExit as stop:  # argparse: a usage error, or --help
            code = stop.code if isinstance(stop.code, int) else 1
    return Output(code, out.getvalue(), err.getvalue())
