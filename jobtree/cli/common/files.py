"""Files that people name on the command line: read or written whole, or refused by their name."""

from __future__ import annotations

from pathlib import Path

from jobtree.api.values.errors import Refusal


def read(path: Path) -> bytes:
    """A file's bytes. Raises Refusal where there is none, or it cannot be read."""
    from jobtree.cluster import disk

    try:
        data = disk.read(path)
        if data is None:
            raise Refusal("there is no such file")
    except Refusal as refusal:
        raise refusal.about(str(path)) from None
    return data


def read_text(path: Path) -> str:
    """A file's UTF-8 text. Raises Refusal."""
    try:
        return read(path).decode()
    except UnicodeDecodeError:
        raise Refusal("it is not UTF-8 text", subject=str(path)) from None


def write_text(path: Path, text: str) -> None:
    """`write` of UTF-8 text."""
    write(path, text.encode())


def write(path: Path, data: bytes) -> None:
    """Writes a file, making its folder where there is none. Raises Refusal where it cannot be written."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        raise Refusal(f"it cannot be written: {(error.strerror or str(error)).lower()}", subject=str(path)) from None
