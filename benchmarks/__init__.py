"""Benchmarks: fleets of any size, and how long a planning cycle takes on them."""
