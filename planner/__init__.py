"""The planner: pure functions from a snapshot and a time to a Plan with its proof; `planning` is its front.

The rooms, from below: `solver`, `placement`; `state`, `filling`, `large`; `search`, `reasons`, `cutting`; `plan`,
`forecast`; `planning`; `advice`, `remedies`.
"""

from planner.planning import Planning, master_of, plan

__all__ = ["Planning", "master_of", "plan"]
