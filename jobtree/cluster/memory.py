"""A cluster in memory: a state file that is read once, and written only when it is told to be."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from jobtree.api import Refusal, Time
from jobtree.cluster import document, edits
from jobtree.cluster.document import Document
from jobtree.cluster.protocol import Ref, Write
from jobtree.cluster.secret_text import secret_text
from jobtree.world.collector import collector_paused
from jobtree.world.memory import seen
from jobtree.world.reading.intake import Intake, Key, Known, Notice, intake, is_read

_PACKED: Final = 4096
"""Objects that have gone after which their places are given up."""


class Memory:
    """`jobtree.cluster.protocol.Cluster` on the documents of a state file, by the same rules as the file itself.

    ``data``: the file's bytes. ``at``: as of a state file: Unix second that objects are first seen at.
    """

    def __init__(self, data: bytes, at: int) -> None:
        self.at = Time(at)
        self.left_out: Sequence[Notice] = ()
        self._text = document.parse(data, json=True)
        self._known = Known()
        self._revision = 0
        self._gone = 0

    @property
    def namespace(self) -> str:
        """Of who names none: `default`."""
        return "default"

    @property
    def runs_pods(self) -> bool:
        """False: kubelets obey at once, as of a state file (spec §10)."""
        return False

    def read(self, without: Key | None = None) -> Intake:
        """Everything at the present revision."""
        with collector_paused():
            documents = [each for each in self._text.documents() if is_read(each.key) and each.key != without]
            return intake(
                [(each.key, self._first_seen(each)) for each in documents], self.revision, self._known, self.at
            )

    def write(self, writes: Sequence[Write], revision: str) -> None:
        """Applies the writes. Raises Refusal where ``revision`` is not the present one, or one of them is refused."""
        if revision != self.revision:
            raise Refusal("the simulated cluster was changed in the middle of a cycle")
        with collector_paused():
            if not self._revision:
                edits.first_sight(self._text, self.at)
            edits.apply(self._text, writes, self.at)
        self._revision += 1
        self._gone += sum(write.verb == "delete" for write in writes)
        if self._gone >= _PACKED:
            self._pack()

    def change(self, writes: Sequence[Write]) -> None:
        """Applies writes of others than a planner: users, kubelets."""
        if writes:
            self.write(writes, self.revision)

    @property
    def revision(self) -> str:
        """What identifies the present state: the number of writes."""
        return str(self._revision)

    def object(self, kind: str, name: str, namespace: str = "") -> dict[str, Any]:
        """One object as it stands, a copy. Raises KeyError where it is not there."""
        return self._text.by_key[edits.key_for(Ref(kind, namespace, name))][1].value()

    def names(self, wanted: Callable[[Key], bool]) -> list[Key]:
        """Keys of the objects that are there."""
        return [key for key in self._text.by_key if wanted(key)]

    def render(self) -> bytes:
        """The state file's bytes, as one List of JSON."""
        self._pack()
        return self._text.render()

    def secret(self, name: str, key: str) -> str | None:
        """A text of a Secret in the planner's namespace; None where it is not there."""
        there = self._text.by_key.get(Key("", "Secret", seen.NAMESPACE, name))
        return None if there is None else secret_text(there[1].raw, key)

    def logs(self, namespace: str, pod: str, *, follow: bool) -> Iterator[bytes]:
        """Raises Refusal: nothing truly runs."""
        raise Refusal("simulated pods write nothing")

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Nobody else can write."""
        yield

    def _first_seen(self, each: Document) -> bytes | msgspec.Raw:
        value = edits.seen(each, self.at)
        return each.raw if value is None else msgspec.json.encode(value)

    def _pack(self) -> None:
        self._gone = 0
        for group in self._text.groups:
            group.documents = [each for each in group.documents if not each.removed]
