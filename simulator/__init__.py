"""The simulator: whole streams of jobs through the cycle's own code, in virtual time, beside other schedulers."""
