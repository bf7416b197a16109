"""GPU-hours, looked at ahead (spec §3.4).

    spent + Σ over open funded and new claims of milli-GPUs × min(P, window left, time limit left) ≤ maxGPUHours

P is ``accountingPeriod``. Only admissions are held to it: running work stays funded while hours remain.
"""

from policies.caps.cap import HOUR_MILLI, Lane, Pool, span
from policies.inputs.money import Money


class Hours:
    """GPU-hours ahead."""

    name = "hours"
    unit = "GPU-hour"
    scale = column = HOUR_MILLI
    ahead = True

    def limit(self, pool: Pool) -> int | None:
        """Bound in milli-GPU-seconds."""
        return pool.max_gpu_milliseconds

    def weight(self, money: Money, pool: Pool, lane: Lane) -> int:
        """The seconds provided for."""
        return span(money, lane, pool.end)

    def charged(self, charge: int, rated: int) -> int:
        """GPU-seconds as they were."""
        return charge
