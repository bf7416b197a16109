"""Dates: what is held for runs that wait, and what they are told of their start (spec §5).

`standing` promises that keep their time and slice, `touched` which of those by cuts are weighed again, `ground` what
these hang on beside work; `holding` what they keep from others while a cycle is planned; `front` from a plan to its
dates: `dating` which stand, move or are made, `sureness` by when, `fitting` which do not fit one another, `undated` why
a run has none, `causes` why a promise moves, `writing` what is written of all that. Imports `planner.forecast` and
below.
"""
