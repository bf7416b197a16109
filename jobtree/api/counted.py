"""A number with its noun, as sentences for people have it."""


def counted(number: int | str, one: str, many: str = "") -> str:
    """``1 GPU``, ``4 GPUs``, ``1 run waits``, ``2 runs wait``; ``many`` where it is not ``one`` with an s.

    A number that is not written as it is comes as text.
    """
    return f"{number} {one if str(number) == '1' else many or f'{one}s'}"
