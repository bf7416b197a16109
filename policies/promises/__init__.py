"""Promises: what is held for a run that waits, from when on, and against whom (spec §5).

`holds` nodes, `funds` money, `rules` when a promise ends or moves. Imports `policies.funding` and below.
"""
