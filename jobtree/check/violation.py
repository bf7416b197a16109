"""What the checker says when it finds something."""

from typing import NamedTuple


class Violation(NamedTuple):
    """A broken rule: its name (a key of ``INVARIANTS``), what breaks it (``Kind namespace/name``), one sentence."""

    invariant: str
    object: str
    message: str
