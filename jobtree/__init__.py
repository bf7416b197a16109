"""Budget-native gang scheduling for GPU fleets: the vocabulary and the front door."""
