"""Solver: HiGHS, and general tools for linear models; knows no GPUs.

`highs` one thread, a fixed seed, no clock; `relaxed` a relaxation solved again as bounds move, from its `basis`;
`shrunk` without what its bounds decide, `ranging` what it gains where limits rise; `rest` some columns free, the others
fixed; `parts`, `blocks` what falls apart, or nearly. Imports `policies.model.linear`.
"""
