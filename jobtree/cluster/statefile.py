"""A cluster in a file (spec §10): what `kubectl get -o yaml` prints, read whole and replaced atomically."""

import hashlib
import uuid
from pathlib import Path
from typing import Final

from jobtree.api import GROUP, Refusal, Time
from jobtree.cluster import document
from jobtree.cluster.document import Document
from jobtree.world.intake import Intake, intake, is_read

_NAMESPACE: Final = uuid.uuid5(uuid.NAMESPACE_DNS, GROUP)


class StateFile:
    """`protocol.Cluster` on a file. ``at`` is the time that objects seen for the first time are given."""

    def __init__(self, path: Path | str, at: int, *, create: bool = False) -> None:
        self.path = Path(path)
        self.at = Time(at)
        self.create = create

    def read(self) -> Intake:
        """Everything in the file. Raises Refusal, naming the file, when it cannot be read whole."""
        try:
            data = self._bytes()
            text = document.parse(data)
            objects = [(each.key, self._seen(each)) for each in text.documents() if is_read(each.key)]
            return intake(objects, revision(data))
        except Refusal as refusal:
            raise refusal if refusal.subject else refusal.about(str(self.path)) from None

    def _bytes(self) -> bytes:
        return self.path.read_bytes()

    def _seen(self, each: Document) -> bytes:
        return bytes(each.raw)


def revision(data: bytes) -> str:
    """What identifies a state: SHA-256 of the file's bytes."""
    return hashlib.sha256(data).hexdigest()
