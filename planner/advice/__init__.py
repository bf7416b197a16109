"""Advice: answers that need more than one plan.

`edits` a world in which something is otherwise, `difference` what that changes; `contenders` who could start if
nothing else did; `versus`, `meeting` why this run and not that one; `holders` who has what a run lacks. Imports
`planner.planning`.
"""
