"""Cuts: who gives way to a due promise, and the lottery where several are equal before the rules (spec §6).

`order` what goes first, `protection` whom nobody may draw, `lottery` the draws. Imports `policies.lifecycle` and below.
"""
