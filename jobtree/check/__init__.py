"""The independent checker: it sees the snapshot and the plan, never the planner."""
