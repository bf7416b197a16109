"""Filling: plans without a solver, run after run.

`purses` what is left of every payer, with `ways` and `lanes` to it and `ceilings` above it; `claims` what starts weigh;
`filler` starts one run; `greedy` all of them in an order; `together` gangs that start as one.
Imports `planner.placement`.
"""
