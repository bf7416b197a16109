"""Asking: commands that change nothing.

`state`, `budgets`, `fleet`, `pods`, `report` what there is; `explain`, `versus` why; `watch`, `verify`. Imports
`jobtree.cli.fate` and `common`.
"""
