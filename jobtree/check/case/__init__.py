"""Case: what the checker has before it, read by nobody's code but its own.

`rows`, `accounts` the snapshot's rows, of work and of money, `tables` all of them; `named` payers; `kin` families;
`caps`, `claims`, `moment` one second under one set of Budgets; `unplanned` all of that before there is a plan, `case`
with it; `violation` what is said. Imports no other folder.
"""
