"""Inputs: what a snapshot says, read once into records that every rule shares.

`fleet` nodes, labels, taints; `places` domains with the same nodes in them; `maintenance` when a node has no
capacity; `money` envelopes and families; `balances` charges of pruned leases; `runs` what each run asks; `shapes`
widths, groups, pods, spares; `claims` leases as rows; `pods` what pods say; `unread` leases that cannot be read;
`seen` the Budgets of the last cycle. Imports nothing else of `policies`.
"""
