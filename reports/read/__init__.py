"""Reading: a lake's cycles as tables, and figures counted by two ways (spec §11).

`source` the cycles of a period; `definition` a report's SQL; `database` its tables, its views (`views.sql`) and the
macros of its sentences (`words.sql`); `owners`; `notices` what is odd (`notices.sql`);
`ledger`, `reconcile` the second way, without SQL.
"""
