"""Importers: what other schedulers' users have, as Jobtree's objects, and what of it has no counterpart.

`made` what an import gives; `slurm` reads batch scripts, `kueue` manifests. Imports `jobtree.api` alone.
"""
