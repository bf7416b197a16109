"""The planner: pure functions from a snapshot and a time to a Plan with its proof."""

from planner.planning import Planning, master_of, plan

__all__ = ["Planning", "master_of", "plan"]
