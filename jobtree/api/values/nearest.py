"""The name that a slip of the pen was probably meant to be."""

import difflib
from collections.abc import Collection


def nearest(name: str, names: Collection[str], cutoff: float = 0.5) -> str | None:
    """The most alike of the names, whatever their case; None where none is.

    ``cutoff``: from 0, anything is alike, to 1, only the same.
    """
    written = {each.lower(): each for each in sorted(names, reverse=True)}
    found = difflib.get_close_matches(name.lower(), sorted(written), n=1, cutoff=cutoff)
    return written[found[0]] if found else None


def did_you_mean(name: str, names: Collection[str], cutoff: float = 0.5) -> str:
    """The end of a sentence that asks for it; empty where no name is alike."""
    found = nearest(name, names, cutoff)
    return f"; did you mean {found}?" if found else ""
