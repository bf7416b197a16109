"""The snapshot and the plan: what planner, checker and lake share."""
