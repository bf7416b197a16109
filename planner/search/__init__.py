"""Search: the stages, each with its proof (spec §4).

`objective` what each counts of a draft, `stages` the loop over them, `certificates` what no draft can beat; `reading` a
solution as starts, `seating` on nodes where those are in the model; `mend` once more near a solution; `fills` without
one; `pay` who pays; `beside` the pass over claims, with the starts in it; `incumbent` the best so far. Imports
`planner.large`, `filling` and below.
"""
