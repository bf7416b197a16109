"""Reasons: why a run waits, and what it lacks (spec §3.9).

`explain` the front, `otherwise` without what is held for the run itself, or under a shorter limit; `lacking` what is
short at the cheapest place, of `space` and of money (`shortage` exact, `routes` fast, `missing` who lacks it, `waking`
who is paid before it); `nowhere` runs that fit on no node; `loads`, `crowding` CPU and memory. `unpaid` why nobody pays
for what runs. Imports `planner.filling` and below.
"""
