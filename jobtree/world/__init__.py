"""The snapshot and the `plan`: what planner, checker and lake share.

`collector` keeps Python's garbage out of it, `kept` what follows from a world at rest.
"""
