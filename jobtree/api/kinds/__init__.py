"""Kinds: the objects, as structs: the only place of field names, units and defaults (spec §1).

`base` and `meta` what they share; `run`, `budget`, `lease`, `reservation`, `plan`, `policy`; `template` of pods;
`core` Kubernetes' own.
"""
