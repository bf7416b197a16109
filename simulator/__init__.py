"""The simulator: whole streams of jobs through the cycle's own code, in virtual time, beside other schedulers.

`stream` what befalls a cluster; `study` the front, one stream under several schedulers; `loop` from event to event,
whoever schedules; `jobtree` as one of them, `due` its next cycle, `lives` what must hold of its plans added up;
`rivals` the others, `fleet` what they know and hold; `results` tables, figures and pictures.
"""
