"""Large masters: made whole part by part.

`components` what hangs together is solved alone; `bands` the relaxation, and size after size; `branching` its bound,
by a few big gangs and levels of starts; `gains` what branching on each brings; `dive` rounds the most decided first;
`rounding` which way a master goes. Imports `planner.solver`.
"""
