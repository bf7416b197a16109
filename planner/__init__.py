"""The planner: pure functions from a snapshot and a time to a Plan with its proof; `planning` is its front, and
`effort` says how much it tries.

The rooms, from below: `solver`, `placement`; `state`, `filling`, `large`; `search`, `reasons`, `cutting`; `plan`,
`forecast`; `dates`; `planning`; `advice`, `remedies`.
"""

from planner.effort import Effort
from planner.planning import Planning, master_of, plan

__all__ = ["Effort", "Planning", "master_of", "plan"]
