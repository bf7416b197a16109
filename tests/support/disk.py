"""A disk that is full."""

import os
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch


@contextmanager
def full_at(size: int) -> Iterator[None]:
    """Lets no file of this process, or of one that it starts, grow beyond ``size`` bytes.

    Nor is anything compiled meanwhile: half of a module's code would be left behind for all who import it later.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    compiles = sys.dont_write_bytecode
    with patch.dict(os.environ, PYTHONDONTWRITEBYTECODE="1"):
        sys.dont_write_bytecode = True
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
            sys.dont_write_bytecode = compiles
