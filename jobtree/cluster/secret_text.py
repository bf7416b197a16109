"""Texts of a v1 Secret."""

from base64 import b64decode

import msgspec


class _Content(msgspec.Struct, frozen=True):
    data: dict[str, str] = {}
    stringData: dict[str, str] = {}  # noqa: N815  # the field's name in Kubernetes


def secret_text(raw: bytes | msgspec.Raw, key: str) -> str | None:
    """A text of the Secret of this JSON: as written, or in base64; None where it has none that can be read."""
    try:
        content = msgspec.json.decode(raw, type=_Content)
        if key in content.stringData:
            return content.stringData[key]
        return b64decode(content.data[key], validate=True).decode() if key in content.data else None
    except (msgspec.ValidationError, ValueError):
        return None
