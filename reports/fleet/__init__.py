"""Fleet: every GPU as a picture, by who holds it: `slots`, `picture`."""
