"""Plan: decisions as the record that leaves the planner (spec §4).

`assemble` the front; `growing` what running runs get more, `asking` as a problem, and `lending` what starts on the
slots of standbys; `leases` who gets which slots on whose budget; `statuses`, `conditions` what Runs say; `turning`
who loses payers; `prices` what one more of a bound is worth. Imports `planner.search`, `reasons` and below.
"""
