"""Cuts: who gives way to a due promise, and the lottery where several are equal before the rules (spec §6)."""
