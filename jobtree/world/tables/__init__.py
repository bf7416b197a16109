"""Tables: a snapshot as columns (spec §2, §11).

`schema` names every column; `columns`, `rows`, `rows_runs`, `rows_arrays` fill them; `records`, `values` read them;
`snapshot` all of them, `digest` and `given` what they add up to; `after` the next snapshot, without a cluster.
"""
