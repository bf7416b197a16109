"""Benchmarks: fleets of any size, and how long a planning cycle takes on them.

``fleet`` makes worlds from recipes, with ``sizes`` of jobs as they are; ``catalogue`` names those that are measured,
and ``load`` keeps them. ``__main__`` measures ``cycles``; ``live``, ``streams``, ``hostile`` and ``lake`` measure what
they are called after. All do it with ``clock``, on a ``machine``.
"""
