"""Funding: what running work has, and what it is charged (spec §3.5 to §3.7).

`classes` the pass over claims that says who is funded; `ledger` charges, second by second; `frozen` payers that
cannot be read; `usage` what Budgets show; `retention` leases that go, while their charges stay. Imports
`policies.caps` and below.
"""
