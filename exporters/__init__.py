"""Everything that leaves: Parquet, plan files, writes to the cluster, metrics, events."""
