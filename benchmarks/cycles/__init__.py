"""How long does one cycle take, how much memory, and how good is its plan?

In the order of the data: ``run`` measures a case of the catalogue, each part in a process of its own: ``cycle`` (with
``hang``, a planner process that does not answer, and ``undated``, one that forecasts nothing), ``baselines``,
``steps``. ``tables`` makes Markdown of the results, ``pages`` those of docs/planner.md.
"""
