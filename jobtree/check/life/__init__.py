"""Life: where and how runs start, run and end, again (spec §1, §2, §7).

`eligibility`, `failures`, `slots` nodes and GPUs; `shape`, `trees`, `arrays` groups, widths, gangs;
`starts`, `pods` who may start and what pods say; `closures`, `reasons`, `fates`, `statuses` ends. Imports
`jobtree.check.case` and `money`.
"""
