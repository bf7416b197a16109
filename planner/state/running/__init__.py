"""Running: what of running work outlives a failed node, and what its owner lets go of (spec §7).

`failing` a world in which nodes failed, `mending` the front of its repair; `standbys` which take the places of lost
pods, the cheapest repair of all; `paying` who pays for a swap; `shrinking` an owner's own shrink. Imports
`planner.placement`, `solver` and `payer_lists` beside it.
"""
