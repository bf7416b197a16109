"""Values: scalars, refusals and text, beneath every kind.

`scalars` durations, times, owners, quantities; `errors` refusals; `counted`, `escaped`, `allowed`, `nearest` how they
are said.
"""
