"""Reading: a lake's cycles as tables, and figures counted by two ways (spec §11).

`source` the cycles of a period; `definition` a report's SQL; `database` its tables and views; `owners`, `notices`;
`ledger`, `reconcile` the second way, without SQL.
"""
