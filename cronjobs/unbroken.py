"""What must not be left half done: a signal that ends the program waits until it is over."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def unbroken(done: str = "") -> Iterator[None]:
    """Within, signals that end the program wait; the first that came takes effect after it.

    ``done``: a note for what it raises then, where all within was done.

    Signals reach the main thread alone, so elsewhere nothing has to wait.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def wait(number: int, _frame: FrameType | None) -> None:
        came.append(number)

    before = {each: signal.signal(each, wait) for each in ENDING if signal.getsignal(each) != signal.SIG_IGN}
    note = ""
    try:
        yield
        note = done
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        try:
            for number in came[:1]:
                signal.raise_signal(number)
        except BaseException as ended:
            if note:
                ended.add_note(note)
            raise
