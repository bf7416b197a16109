"""The command lines `kubectl-runs` (`plugin`) and `jobtree` (`operator`): parse, call, print.

`entry` where both begin; `completion` what may stand next; `service` what runs beside the cycles; `migrate` what other
schedulers' users have; `simulate` streams of jobs in virtual time; the other commands lie in folders.
"""
