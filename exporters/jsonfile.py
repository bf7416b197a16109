"""JSON from a disk: whatever bytes are there, it is read or refused in one sentence (spec §11)."""

from typing import TypeVar

import msgspec

from jobtree.api import Refusal, dec_hook

Kind = TypeVar("Kind")


def decode(data: bytes | msgspec.Raw, kind: type[Kind], problem: str, subject: str = "") -> Kind:
    """The value of ``kind`` in ``data``. Raises Refusal with the ``problem`` and why, about the ``subject``."""
    try:
        return msgspec.json.decode(data, type=kind, dec_hook=dec_hook)
    except UnicodeDecodeError:
        why = "a text in it is not UTF-8"
    except RecursionError:
        why = "it is nested without end"
    except msgspec.DecodeError as error:
        why = str(error)
    raise Refusal(f"{problem}: {why}", subject=subject)
