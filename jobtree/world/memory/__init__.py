"""Memory: what one cycle leaves for the next.

`cycles` what cycles are called; `seen` the Budgets as they were; `balances` charges of pruned leases; `lottery` the
chain.
"""
