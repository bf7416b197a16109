"""Promises: what is held for a run that waits, from when on, and against whom (spec §5)."""
