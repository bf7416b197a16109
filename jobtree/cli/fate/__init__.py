"""Fate: what becomes of a run, in words.

`fate` the front; `promised`, `awaited`, `cuts`, `remedies` its parts. Imports `jobtree.cli.common`.
"""
