"""Monitoring: figures of cycles (spec §12).

`figures` one cycle's; `metrics` summed up and served. Imports `exporters.lake` and `plans`.
"""
