"""Node names as people write them: by comma, runs of consecutive numbers as ``b01-b08``."""

import re
from collections.abc import Collection, Iterable

_NUMBERED = re.compile(r"(.*?)([0-9]+)", re.ASCII | re.DOTALL)
_NUMBER = re.compile(r"([0-9]+)", re.ASCII)


Natural = tuple[tuple[str | int, ...], str]


def natural(name: str) -> Natural:
    """Sorts ``n9`` before ``n10``: text and numbers by turns; names that only zeros tell apart as text."""
    parts = _NUMBER.split(name)
    return tuple(int(part) if place % 2 else part for place, part in enumerate(parts)), name


def by_names(names: Iterable[str]) -> list[Natural]:
    """Sorts keys of several names, such as a namespace and a run's name, each as `natural` does."""
    return [natural(name) for name in names]


def compress(names: Iterable[str]) -> str:
    """``a01, b01, b02, b03`` -> ``a01,b01-b03``. Each name once, in natural order."""
    runs: list[list[str]] = []
    for name in sorted(set(names), key=natural):
        if runs and name == _after(runs[-1][-1]):
            runs[-1].append(name)
        else:
            runs.append([name])
    return ",".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def expand(text: str, names: Collection[str]) -> list[str]:
    """What `compress` made, back: those of the ``names`` that ``text`` means; none where it means others too."""
    found: list[str] = []
    for part in text.split(","):
        ends = [(part, part)] if part in names else [(part[:i], part[i + 1 :]) for i, c in enumerate(part) if c == "-"]
        run = next(filter(None, (_between(first, last, names) for first, last in ends)), None)
        if run is None:
            return []
        found += run
    return list(dict.fromkeys(found))


def _between(first: str, last: str, names: Collection[str]) -> list[str]:
    """The consecutive names from the first to the last; none where one of them is not among the names."""
    run, name = [], first
    while name in names:
        run.append(name)
        if name == last:
            return run
        name = _after(name) or ""
    return []


def _after(name: str) -> str | None:
    """The name with the next number, as wide as this one: ``b08`` -> ``b09``, ``n9`` -> ``n10``."""
    match = _NUMBERED.fullmatch(name)
    if match is None:
        return None
    return f"{match[1]}{int(match[2]) + 1:0{len(match[2])}}"
