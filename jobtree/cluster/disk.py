"""Files that are never half written: a lock among writers, and replacement in one step (spec §10)."""

import contextlib
import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from jobtree.api import Refusal

LOCK_WAIT: Final = 30.0
"""Seconds that a writer waits for another one: a cycle of the largest fleet takes less."""

_PAUSE: Final = 0.02


def read(path: Path) -> bytes | None:
    """The file's bytes, None where there is none. Raises Refusal for what is no file or cannot be read."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Refusal("it is not a regular file; name a file")
            return file.read()
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        raise Refusal("it is a directory; name a file in it") from None
    except OSError as error:
        raise Refusal(f"it cannot be read: {_reason(error)}") from None


def _without_waiting(path: str, flags: int) -> int:
    """Opens a file; a named pipe would otherwise wait for somebody to write to it."""
    return os.open(path, flags | os.O_NONBLOCK)


@contextlib.contextmanager
def locked(path: Path, wait: float = LOCK_WAIT) -> Iterator[None]:
    """Holds the lock on writing ``path``, a path without symbolic links. Raises Refusal when it is not free in time.

    The lock is one on the directory: that one is there before the file is, stays when the file is replaced, leaves
    nothing behind, and is let go by the kernel when the process dies.
    """
    try:
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise Refusal(f"its directory cannot be opened: {_reason(error)}") from None
    try:
        _lock(directory, time.monotonic() + wait, wait)
        yield
    finally:
        os.close(directory)


def _lock(directory: int, deadline: float, wait: float) -> None:
    while True:
        try:
            fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise Refusal(f"another command has been writing it for {wait:g} s; try again later") from None
            time.sleep(_PAUSE)
        except OSError as error:
            raise Refusal(f"it cannot be locked: {_reason(error)}") from None
        else:
            return


def replace(path: Path, data: bytes, *, scratch: Path | None = None, lasting: bool = True) -> None:
    """Makes ``data`` the file's content in one step. Mode and owner of a file that is there stay as they were.

    A crash at any moment leaves the old content or the new one. The caller holds the lock, so what an earlier crash
    left behind is overwritten; with a ``scratch`` folder, on the same disk, several may write at once and the last one
    stands: `sweep` takes away what a crash left there. What is not ``lasting`` outlasts a kill, and no power cut, at no
    waiting for the disk. Raises Refusal, with the old content in place, when the new one
    cannot be written.
    """
    new = path.with_name(f".{path.name}.new") if scratch is None else scratch / secrets.token_hex(16)
    try:
        before = path.stat() if path.exists() else None
        if before and not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        new.unlink(missing_ok=True)
        _write(new, data, before, lambda: os.replace(new, path), lasting=lasting)
    except OSError as error:
        with contextlib.suppress(OSError):  # the reason why it could not be written is the one to tell
            new.unlink(missing_ok=True)
        state = "is as it was" if path.exists() else "is not there"
        raise Refusal(f"it cannot be written and {state}: {_reason(error)}") from None
    if lasting:
        _sync_directory(path.parent)


def sweep(scratch: Path) -> None:
    """Takes away what writers left in the folder that are no more. What cannot be taken away stays: it does no harm."""
    for path in scratch.iterdir() if scratch.is_dir() else ():
        with contextlib.suppress(OSError):  # its writer is at work, or has just ended
            file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(file)


def _own(new: Path) -> int:
    """A new file, locked for as long as its writer lives: by that it is told from what a killed one left."""
    while True:
        file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
        with contextlib.suppress(OSError):  # a disk without locks: nobody can sweep there either
            fcntl.flock(file, fcntl.LOCK_EX)
        if os.fstat(file).st_nlink:
            return file
        os.close(file)  # swept away before it was locked


def _write(new: Path, data: bytes, before: os.stat_result | None, then: Callable[[], None], *, lasting: bool) -> None:
    """Writes a new file, for good where it is to be ``lasting``, and calls ``then`` while it is still locked."""
    file = _own(new)
    try:
        if before:
            made = os.fstat(file)
            if (made.st_uid, made.st_gid) != (before.st_uid, before.st_gid):
                with contextlib.suppress(PermissionError):  # only root may give a file away
                    os.chown(file, before.st_uid, before.st_gid)
            os.chmod(file, stat.S_IMODE(before.st_mode))
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
        if lasting:
            os.fsync(file)
        then()
    finally:
        os.close(file)


def _sync_directory(directory: Path) -> None:
    """Makes a name in a directory outlast a power cut. Raises Refusal where the disk fails at it."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    except OSError as error:
        raise Refusal(f"it is written, but its directory cannot be made to last: {_reason(error)}") from None
    finally:
        os.close(handle)


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
