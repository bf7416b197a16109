"""Changing: commands that write, and `whatif`, which only thinks so.

`submit` with `manifests`, `nodes`, `doubts`; `control`, `sponsors`; `whatif` with `changes`. Imports
`jobtree.cli.asking` and below.
"""
