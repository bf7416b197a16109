"""The kinds users and the cluster speak: the only place that knows field names."""
