"""Cutting: what gives way to a promise that is due and has no room (spec §5, §6).

`victims` what may be cut of running work; `least` the set of it with the least harm, as a small MILP over free slots
and victims together in the `domains` that are weighed; `pools` who may be drawn where several sets are equal, `odds`
how likely each is; `trial` whether the run starts then, `places` where; `activation` what starts of what is due,
`deciding` what a cycle cuts, `dating` when a later one would, `told` what runs are told of that; `opportunistic` work
that leaves for any funded start. Imports `planner.state` and `planner.filling`.
"""
