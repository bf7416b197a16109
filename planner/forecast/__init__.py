"""Forecast: when and where a run that waits will start, by all that is known to end (spec §5).

`calendar` which times are known and what the world is then; `later` the state of a known time, told from that of now;
`moments` those worlds, with what earlier promises take of them; `slots` a quick look at what stays free over them;
`starts` what a start is and holds, `spending` what it takes of hours and credits, `natural` the first one of a run, and
whether it counts on an estimate; `estimates` about when others start, `fluid` from what, `lanes` on whose money,
`durations` how long runs last. Imports `planner.cutting` and below.
"""
