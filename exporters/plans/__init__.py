"""Plans: one plan as files, objects and words.

`planjson` its canonical bytes; `planfile` for people; `planobject` for the cluster; `summary` in words; `worldprint`
what it was made from; `modelfile`, `modelnames` its master for other solvers; `plain`, `nodelist`, `jsonfile` how
values are written.
"""
