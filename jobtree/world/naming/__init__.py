"""Naming: what things are called, and who is family.

`kinship`, `named` owners and payers; `payments` payers that stop and pay again; `owners` whom a text means; `domains`;
`arrays` indices; `needs` what a pod asks for; `annotations`, `config_maps` what else is read by name.
"""
