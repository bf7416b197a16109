"""Money: payers, caps, classes, recall and charges, again (spec §3).

`payers` who may pay; `ahead` look-ahead; `classes`, `funded`, `recall` who is funded; `ledger`, `between` what is
charged; `pruning`, `usage` what stays and what Budgets show. Imports `jobtree.check.case` and `time`.
"""
