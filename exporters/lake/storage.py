"""Where the lake's files lie: a folder, or an fsspec URL such as ``s3://BUCKET/PATH`` (spec §11).

A place is a path either way: what `pathlib` offers on paths, universal-pathlib offers on URLs. A store must show a file
only once it is whole, as folders (see `cluster.disk`) and object stores do.
"""

import contextlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from jobtree.api import Refusal
from jobtree.cluster import disk

if TYPE_CHECKING:
    from upath import UPath

_LOCAL: Final = "file://"


def place(given: Path | str) -> Path:
    """The path that a folder's name or a URL stands for. Raises Refusal where nothing installed can reach the URL."""
    text = str(given)
    if text.startswith(_LOCAL):
        return Path(text.removeprefix(_LOCAL))
    if "://" not in text:
        return Path(given)
    try:
        from upath import UPath
    except ModuleNotFoundError:
        need = "a lake at a URL needs universal-pathlib, which is not installed; install the wheel with [lake]"
        raise Refusal(need, subject=text) from None
    try:
        with warnings.catch_warnings(action="ignore"):  # of schemes that it treats like any other
            found = UPath(text)
            _ = found.fs
    except ImportError as error:
        raise Refusal(f"the driver of its scheme is not installed: {error}", subject=text) from None
    except ValueError as error:
        allowed = "allowed are a folder, and the URL of a store that fsspec knows, such as s3://BUCKET/PATH"
        raise Refusal(f"{_said(error)}; {allowed}", subject=text) from None
    return cast("Path", found)


def exists(path: Path) -> bool:
    """Whether there is such a file. Raises Refusal where its store does not answer."""
    with _told(path, "it cannot be looked for"):
        return path.exists()


def read(path: Path) -> bytes:
    """A file's bytes. Raises Refusal where there is none, or it cannot be read."""
    url = _url(path)
    with _told(path, "it cannot be read"):
        data = disk.read(path) if url is None else bytes(url.read_bytes())
        if data is None:
            raise FileNotFoundError
        return data


def write(path: Path, data: bytes, scratch: Path, *, lasting: bool = True) -> None:
    """Makes ``data`` the file's content in one step, and its folder where there is none. Raises Refusal.

    ``scratch``: the folder on the same disk in which it becomes whole; a store has no need of one. ``lasting``: see
    `disk.replace`.
    """
    url = _url(path)
    if url is not None:
        with _told(path, "it cannot be written"):
            url.fs.makedirs(url.parent.path, exist_ok=True)
            url.fs.pipe_file(url.path, data)
        return
    with _told(scratch.parent, "this lake cannot be written (--lake names another)"):
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch.mkdir(parents=True, exist_ok=True)
    with _told(path, "it cannot be written"):
        disk.replace(path, data, scratch=scratch, lasting=lasting)


def sweep(scratch: Path) -> None:
    """Takes away what killed writers left in the scratch folder. Raises Refusal where it cannot be listed."""
    if _url(scratch) is None:
        with _told(scratch, "it cannot be listed"):
            disk.sweep(scratch)


def remove(path: Path) -> None:
    """Takes a file away, if it is there, and its folder where nothing else is in it. Raises Refusal."""
    with _told(path, "it cannot be taken away"):
        path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # something else lies there: it stays
            path.parent.rmdir()


def glob(root: Path, pattern: str) -> list[Path]:
    """The files below a place that match, in no order. Raises Refusal where its store does not answer."""
    with _told(root, "it cannot be listed"):
        return list(root.glob(pattern))


def _url(path: Path) -> "UPath | None":
    """The path as what it is where it is no folder's."""
    given: object = path
    return None if isinstance(given, Path) else cast("UPath", given)


@contextmanager
def _told(path: Path, what: str) -> Iterator[None]:
    """Makes one sentence, with the file's name, of whatever goes wrong with it."""
    try:
        yield
    except Refusal as refusal:
        raise refusal.about(str(path)) from None
    except FileNotFoundError:
        raise Refusal("there is no such file", subject=str(path)) from None
    except Exception as error:  # noqa: BLE001  the driver of every store has errors of its own
        raise Refusal(f"{what}: {_said(error)}", subject=str(path)) from None


def _said(error: Exception) -> str:
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(said.split()) or type(error).__name__
