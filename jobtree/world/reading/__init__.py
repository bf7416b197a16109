"""Reading: decoded objects as an intake; what is broken is set aside and named (spec §2).

`intake` the front; `leases`, `restored`, `unread`, `ledgers`, `holdings`, `lost` each kind of thing that a hand or a
crash can break.
"""
