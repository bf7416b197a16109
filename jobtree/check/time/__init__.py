"""Time: promises, cuts and draws, again (spec §5, §6).

`promises`, their room `held` and money `dates`, `cutting`, `lottery`. Imports `jobtree.check.case`.
"""
