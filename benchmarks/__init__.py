"""Benchmarks: fleets of any size, and how long a planning cycle takes on them.

``fleet`` makes worlds from recipes, with ``sizes`` of jobs as they are; ``catalogue`` names those that are measured,
and ``load`` keeps them. ``cycles``, ``live``, ``streams``, ``hostile`` and ``lake`` measure, with ``clock``, on a
``machine``.
"""
