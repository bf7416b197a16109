"""Placement: which GPUs, exactly (spec §2).

`room` free slots, domain by domain and node by node; `vacancy` the same, summed; `place` one start; `draft` all
starts of a plan; `lay` a model's counts onto nodes, by `allot`, and by `repair` where that leaves somebody out;
`tie_breaks` what stages 8 and 9 come to. Imports `planner.solver`.
"""
