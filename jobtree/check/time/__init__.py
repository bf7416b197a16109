"""Time: promises, cuts and draws, again (spec §5, §6).

`promises`, `cutting`, `lottery`. Imports `jobtree.check.case`.
"""
