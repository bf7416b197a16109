"""Model: the MILP, one family of columns and rows a file.

`linear` a linear model as arrays; `problem` what is to be solved; `capacity`, `seats` room, domain by domain and node
by node; `demand` what runs ask of it; `payers` who may pay, nearest first; `payments` money of each payer, `flows`
the same for large models; `recall` what a nearer start takes back; `gangs`, `trees` runs that hang together; `master`
all families in their fixed order. Imports every other folder of `policies` but `cuts`.
"""
