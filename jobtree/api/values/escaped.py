"""Text that is shown: characters that nobody sees, or that steer a terminal, as what they are.

Names, labels, annotations and messages may hold any character. Where text leaves for people (tables, stderr, pages,
pictures, CSV) it passes through here; JSON and YAML have their own escapes.
"""

import unicodedata
from typing import Final

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of Unicode: controls, formats (bidirectional and zero-width ones too), halves of pairs, line ends."""
_BLANK: Final = frozenset({0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0})
"""Letters and marks that show nothing (Unicode's Default_Ignorable_Code_Point outside these categories)."""


class _Escapes(dict[int, int | str]):
    """By code point what stands for it; filled as characters are met."""

    def __missing__(self, code: int) -> int | str:
        hidden = code in _BLANK or unicodedata.category(chr(code)) in _HIDDEN
        self[code] = found = (f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}") if hidden else code
        return found


_ESCAPES: Final = _Escapes()


def escaped(text: str) -> str:
    r"""The text with ``\u001b`` for ESC, ``\u202e`` for a right-to-left override, and so on; else as it is."""
    return text if text.isascii() and text.isprintable() else text.translate(_ESCAPES)


def is_plain(text: str) -> bool:
    """Does the text show as it is?"""
    return escaped(text) == text
