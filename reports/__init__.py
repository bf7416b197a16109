"""Reports over the Parquet lake: `query` asks, `output` prints; SQL and the page's template lie beside them."""
