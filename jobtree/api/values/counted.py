"""Numbers with their nouns, and lists of names, as sentences for people have them."""

from collections.abc import Collection
from itertools import islice


def counted(number: int | str, one: str, many: str = "") -> str:
    """``1 GPU``, ``4 GPUs``, ``1 run waits``, ``2 runs wait``; ``many`` where it is not ``one`` with an s.

    A number that is not written as it is comes as text.
    """
    return f"{number} {one if str(number) == '1' else many or f'{one}s'}"


def gpus_of(active: int, spare: int) -> str:
    """``8 GPUs and 1 spare GPU``; of none, only the others."""
    said = [counted(active, "GPU")] if active or not spare else []
    return " and ".join([*said, *([counted(spare, "spare GPU")] if spare else [])])


MOST_NAMED = 10
"""Most names that a sentence spells out."""


def named(names: Collection[str], between: str = ", ", most: int = MOST_NAMED) -> str:
    """The names as a sentence has them: ``a, b, c``, and of more than ``most`` the first and the number of the rest."""
    first = list(islice(names, most))
    rest = len(names) - len(first)
    return between.join([*first, *([f"{rest} more"] if rest else [])])
