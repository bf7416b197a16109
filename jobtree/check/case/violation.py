"""What the checker says when it finds something."""

from typing import NamedTuple, Self

from jobtree.check.case.rows import LeaseKey, RunKey


class Violation(NamedTuple):
    """A broken rule: its name (a key of ``INVARIANTS``), what breaks it (``Kind namespace/name``), one sentence."""

    invariant: str
    object: str
    message: str

    @classmethod
    def of_run(cls, invariant: str, key: RunKey, message: str) -> Self:
        """A Run breaks it."""
        return cls(invariant, f"Run {'/'.join(key)}", message)

    @classmethod
    def of_lease(cls, invariant: str, key: LeaseKey, message: str) -> Self:
        """A Lease breaks it."""
        return cls(invariant, f"Lease {'/'.join(key)}", message)
