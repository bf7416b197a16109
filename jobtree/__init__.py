"""Budget-native gang scheduling for GPU fleets: the vocabulary and the front door."""

__version__ = "0.1.0"
"""Stated in every plan: the same snapshot, policy, time and version give the same bytes."""
