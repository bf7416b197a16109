"""Caps: how much may be paid, every limit as a weighted sum of payments (spec §3.4).

`cap` pool, measure, cap and the book of all caps; pools: `scopes`, `aggregates`, `lending`, `uses`; measures:
`concurrency`, `hours`, `credit`; `book` the one list of them; `leeway` caps that cannot bind. Imports
`policies.inputs`.
"""
