"""One module per rule family: its hard constraints, its objective stage, its words."""
