"""From a snapshot and a policy to a plan with its proof, as pure functions."""
