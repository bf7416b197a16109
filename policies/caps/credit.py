"""Credits, looked at ahead: GPU-hours at the flavor's rate (spec §3.4, Policy.creditRates).

spent + Σ over open funded and new claims of milli-GPUs × min(P, window left, limit left) × rate ≤ maxCredits
"""

from policies.caps.cap import HOUR_MILLI, Lane, Pool, span
from policies.inputs.money import Money


class Credit:
    """Credits ahead, in milli-GPU-seconds × millicredits per GPU-hour."""

    name = "credits"
    unit = "credit"
    scale = 1000 * HOUR_MILLI
    column = 1000
    ahead = True

    def limit(self, pool: Pool) -> int | None:
        """A millicredit is `HOUR_MILLI` of the weighed unit."""
        return None if pool.max_millicredits is None else HOUR_MILLI * pool.max_millicredits

    def weight(self, money: Money, pool: Pool, lane: Lane) -> int:
        """Seconds provided for × the rate of the paying envelope's flavor."""
        return span(money, lane, pool.end) * money.rate_milli(lane.envelope)

    def charged(self, charge: int, rated: int) -> int:
        """GPU-seconds at the rate of their time."""
        return rated
