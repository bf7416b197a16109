"""The command lines `kubectl-runs` and `jobtree`: parse, call, print."""
