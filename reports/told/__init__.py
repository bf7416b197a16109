"""Told: what people see of a report.

`told` its answer; `sheet` one table; `charts` one picture; the templates of pages lie beside them.
"""
