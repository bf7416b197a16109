"""Concurrency: GPUs at one time (spec §3.4).

    Σ over payments in the pool of milli-GPUs ≤ 1000 × concurrency

A spare counts ``spares.discount`` of a GPU, an Active GPU one.
"""

from policies.caps.cap import Lane, Pool
from policies.inputs.money import Money


class Concurrency:
    """GPUs now: binds running work and admissions alike."""

    name = "concurrency"
    unit = "GPU"
    scale = 1000
    column = 1
    ahead = False

    def limit(self, pool: Pool) -> int | None:
        """Bound in milli-GPUs."""
        return None if pool.concurrency is None else 1000 * pool.concurrency

    def weight(self, money: Money, pool: Pool, lane: Lane) -> int:
        """Each milli-GPU counts itself."""
        return 1

    def charged(self, charge: int, rated: int) -> int:
        """The past does not count."""
        return 0
