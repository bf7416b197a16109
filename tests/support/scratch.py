"""Where tests keep their files: in memory where there is much of it, for no test has the machine go down.

A cycle waits some thirty times until the disk holds what it wrote: a quarter of a second on a common one.
"""

import os
import tempfile
from pathlib import Path
from typing import Final

MEMORY: Final = Path("/dev/shm")
LEAST: Final = 4 << 30
"""Bytes that are free there; a container may give it a few megabytes only."""


def in_memory(folder: Path = MEMORY, least: int = LEAST) -> bool:
    """May a folder serve: is it there and ours to write, with so many bytes free, and may programs be run from it?"""
    if not os.access(folder, os.W_OK):
        return False
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize >= least and not found.f_flag & getattr(os, "ST_NOEXEC", 0)


def choose() -> None:
    """Temporary files of this process and of those that it starts go there, unless someone said where they go."""
    if "TMPDIR" not in os.environ and in_memory():
        os.environ["TMPDIR"] = str(MEMORY)
        tempfile.tempdir = None
