"""The name that a slip of the pen was probably meant to be."""

import difflib
from collections.abc import Collection


def nearest(name: str, names: Collection[str], cutoff: float = 0.5) -> str | None:
    """The most alike of the names; None where none is. ``cutoff``: from 0, anything is alike, to 1, only the same."""
    return next(iter(difflib.get_close_matches(name, sorted(names), n=1, cutoff=cutoff)), None)


def did_you_mean(name: str, names: Collection[str], cutoff: float = 0.5) -> str:
    """The end of a sentence that asks for it; empty where no name is alike."""
    found = nearest(name, names, cutoff)
    return f"; did you mean {found}?" if found else ""
