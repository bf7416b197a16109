"""JSON from a disk: whatever bytes are there, it is read or refused in one sentence (spec §11)."""

from functools import cache
from threading import Lock
from typing import Any, Final, TypeVar

import msgspec

from jobtree.api import Refusal, dec_hook

Kind = TypeVar("Kind")
_MAKING: Final = Lock()
"""Held while a decoder is made: msgspec looks at types in one thread only, and reports read cycles in several."""


def decode(data: bytes | msgspec.Raw, kind: type[Kind], problem: str, subject: str = "") -> Kind:
    """The value of ``kind`` in ``data``. Raises Refusal with the ``problem`` and why, about the ``subject``."""
    with _MAKING:
        decoder = _decoder(kind)  # type: ignore[arg-type]  # a class has a hash
    try:
        found: Kind = decoder.decode(data)
        return found
    except UnicodeDecodeError:
        why = "a text in it is not UTF-8"
    except RecursionError:
        why = "it is nested without end"
    except msgspec.DecodeError as error:
        why = str(error)
    raise Refusal(f"{problem}: {why}", subject=subject)


@cache
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind, dec_hook=dec_hook)
