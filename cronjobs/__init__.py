"""The cycles: what runs every minute.

`cycle` the front; `completing` a cycle that was begun and not ended; `worker` the planner's process, `deadline` that
ends it, `frames` and `wire` what the two say to one another; `unbroken` what no signal may cut in two; `lottery` the
chain's secret; `news` what is said of a search while it goes on; `replay` a stored cycle again; `schedule` when the
cycles of one command happen.
"""
