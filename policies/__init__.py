"""The rules, one module per family: its hard constraints, its objective stage, its words.

The rooms, from below: `inputs`; `caps`, `lifecycle`; `funding`; `promises`; `model`, `cuts`. All are pure functions of
what a snapshot says.
"""
