"""The forecast: when and where each run that waits will start, by all that is known to end (spec §5).

`calendar` says which times are known and what the world is then; `moments` keeps those worlds, with what earlier
promises take of them; `natural` finds a run's first start among them.
"""
