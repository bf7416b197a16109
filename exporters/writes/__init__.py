"""Writes: what carries out a plan, in the order of spec §8.

`writes` the front; `pods`, `podspec` the pods that leases want, `ranks` and `announced` what these read of their run;
`events` what Runs are told; `cordons` failed nodes.
Imports `exporters.lake` and `plans`.
"""
