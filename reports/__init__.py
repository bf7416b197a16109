"""Reports over the Parquet lake: `query` asks, `output` prints.

`sql/` has a file a report; `read/` gives a query its tables and views and counts its figures again; `told/` is what
people see of it; `fleet/` draws every GPU.
"""
