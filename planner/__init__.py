"""The planner: pure functions from a snapshot and a time to a Plan with its proof."""

from planner.cycle import incumbents, master_of, plan

__all__ = ["incumbents", "master_of", "plan"]
