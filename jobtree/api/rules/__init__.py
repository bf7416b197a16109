"""Rules: what the types of the kinds cannot say (spec §1).

`budget`, `run`, `others` by kind, `together` over several objects, `edits` over time, `kinds` all of them; `decode`
reads an object, `faults` all that is wrong with it.
"""
