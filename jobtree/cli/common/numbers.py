"""Numbers of stages as people read them."""

from __future__ import annotations

from jobtree.api.values.scalars import DAY


def worth(value: int, unit: str) -> float:
    """A stage's value: weight in GPU-days, payers in GPUs × rank."""
    return value / (DAY if unit.startswith("GPU-seconds") else 1000 if unit.startswith("milli") else 1)


def unit_of(unit: str) -> str:
    """The unit of `worth`."""
    return unit.replace("GPU-seconds", "GPU-days").replace("milli-GPUs", "GPUs")


def plain(number: float) -> str:
    """At most two decimals, none where they say nothing."""
    return f"{number:.2f}".rstrip("0").rstrip(".")
