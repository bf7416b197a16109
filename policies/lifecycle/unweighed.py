"""Why a run that waits is not even weighed: the reasons that its conditions give, each in one place.

The rules behind them: `lifecycle.tenancy`, `lifecycle.follow`, `lifecycle.arrays`, `model.gangs`, `inputs.unread`.
"""

from typing import Final

OWNER: Final = "OwnerNotAllowed"
UPSTREAM: Final = "Upstream"
GANG: Final = "GangIncomplete"
ARRAY: Final = "ArrayLimit"
LEASE: Final = "LeaseUnreadable"

ELSEWHERE: Final = frozenset({UPSTREAM, GANG, ARRAY, LEASE})
"""Those that no change of room or money ends: the run waits for other runs or for a hand."""
