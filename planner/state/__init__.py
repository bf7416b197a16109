"""State: what a snapshot means for a plan, before anything is decided.

`derive` the front, from a snapshot to `state`, the value that all else asks; `marking` labels that holds and cuts put
on nodes; `uncovered` what pods without a lease use; `past`, `replay`, `segments` the seconds since the last cycle (spec
§3.6); `closing` which leases end; `blocking` who is not even weighed; `payer_lists` who may pay for whom; `lower` runs
as types and shapes of a problem. Imports `planner.placement`.
"""
