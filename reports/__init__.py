"""Reports over the Parquet lake: SQL, templates and charts."""
