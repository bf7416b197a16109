"""Forecast: when and where each run that waits will start, by all that is known to end (spec §5).

`calendar` which times are known and what the world is then; `moments` those worlds, with what earlier promises take of
them; `natural` a run's first start among them; `standing` promises that keep theirs; `promises` all dates of a plan,
`undated` why a run has none, `fitting` which dates do not fit one another; `later` is the state of a known time, where
many wait told from that of now; `estimates` about when others start, `fluid` from what, `durations` how long runs last;
`holding` what promises keep. Imports `planner.cutting` and below.
"""
