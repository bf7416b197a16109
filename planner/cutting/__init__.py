"""Cuts: what gives way to a promise that is due and has no room (spec §5, §6).

`victims` reads what may be cut of running work; `least` finds the set of it with the least harm, as a small MILP over
free slots and victims together; `pools` says who may be drawn where several sets are equal, `odds` how likely each is.
"""
