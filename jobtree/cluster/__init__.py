"""Where state lives: one protocol, a state file or a live cluster behind it."""
