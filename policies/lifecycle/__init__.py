"""Lifecycle: what may start and what ends (spec §1, §7).

`tenancy` namespaces and owners; `follow` upstream runs; `arrays` how many indices run; `unweighed` why a run is not
even weighed; `endings` what ends and why; `failures` failed nodes; `incomplete` gangs that lost a Lease by a hand.
Imports `policies.inputs`.
"""
