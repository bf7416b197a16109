"""Asking: commands that change nothing.

`state`, `budgets`, `fleet`, `pods`, `report` what there is; `events` what happened; `explain`, `versus` why; `watch`;
`verify` what was drawn, `drawn` by what others say of it, `recorded` by what the lake does. Imports `jobtree.cli.fate`
and `common`.
"""
