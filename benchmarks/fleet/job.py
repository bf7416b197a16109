"""A Run to be."""

from dataclasses import dataclass, field
from typing import Any

from benchmarks.fleet.money import Budget, Payment
from benchmarks.fleet.room import Seat


@dataclass(eq=False)
class Job:
    """``started`` and what follows are set once it runs."""

    name: str
    budget: Budget
    flavor: str
    gpus: int
    seconds: int
    group: int = 0
    pod: int = 0
    spares: int = 0
    spread: bool = True
    malleable: dict[str, int] | None = None
    funding: dict[str, Any] = field(default_factory=dict)
    runtime: dict[str, int] = field(default_factory=dict)
    after: list[str] = field(default_factory=list)
    created: int = 0
    started: int | None = None
    width: int = 0
    bill: list[Payment] = field(default_factory=list)
    seats: list[Seat] = field(default_factory=list)

    def groups(self, width: int) -> list[int]:
        """GPUs of each group at this width."""
        size = self.group or width
        return [min(size, width - i) for i in range(0, width, size)]
