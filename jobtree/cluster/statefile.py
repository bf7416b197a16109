"""A cluster in a file (spec §10): what `kubectl get -o yaml` prints, read whole and replaced in one step."""

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from jobtree.api import Refusal, Time
from jobtree.cluster import disk, document, edits
from jobtree.cluster.document import StateText
from jobtree.cluster.protocol import Write
from jobtree.cluster.secret_text import secret_text
from jobtree.world.collector import collector_paused
from jobtree.world.memory import seen
from jobtree.world.reading.intake import Intake, Key, Known, Notice, intake, is_read


class _Read(NamedTuple):
    """What was read last, or written (then without a revision), so that the same bytes are not parsed again."""

    data: bytes
    revision: str
    text: StateText


class StateFile:
    """`protocol.Cluster` on a file; symbolic links are followed. Every Refusal names the file or the object.

    ``at``: the time, in Unix seconds, that objects without uid or creation time are first seen at. Reading tells what
    they get, the next write puts it into the file. ``create``: a missing file is an empty cluster; else a Refusal.
    ``wait``: seconds to wait for another writer. What was read once is not parsed or decoded again while it stays as it
    is, so several cycles had better use one of these, its ``at`` set to each cycle's time.
    """

    def __init__(self, path: Path | str, at: int, *, create: bool = False, wait: float = disk.LOCK_WAIT) -> None:
        self.path = Path(path)
        self.at = Time(at)
        self._create = create
        self._wait = wait
        self._held = 0
        self._last: _Read | None = None
        self._known = Known()
        self.left_out: Sequence[Notice] = ()

    @property
    def namespace(self) -> str:
        """Of who names none: `default`."""
        return "default"

    @property
    def runs_pods(self) -> bool:
        """False: a file's kubelets obey at once, and no Pod document is written (spec §10)."""
        return False

    def read(self, without: Key | None = None) -> Intake:
        """Everything in the file, at one revision: files are replaced in one step, so no lock is needed.

        ``without``: an object that counts as not there, such as a broken Policy that is to be replaced.
        """
        with self._named(), collector_paused():
            self._last = last = self._read()
            documents = [each for each in last.text.documents() if is_read(each.key) and each.key != without]
            found = [(each.key, self._first_seen(each)) for each in documents]
            return intake(found, last.revision, self._known, self.at)

    def write(self, writes: Sequence[Write], revision: str) -> None:
        """Applies all of the writes on top of ``revision``, or raises Refusal and leaves the file untouched.

        The first writer also puts what `read` said of objects seen for the first time into the file.
        """
        with self.hold(), self._named(), collector_paused():
            before = self._read(revision)
            self._last = None  # its text is changed from here on
            edits.first_sight(before.text, self.at)
            edits.apply(before.text, writes, self.at)
            after = before.text.render()
            if after != before.data:
                disk.replace(self._target(), after)
            self._last = _Read(after, "", before.text)

    def secret(self, name: str, key: str) -> str | None:
        """A text of a Secret in the planner's namespace, as the file says it; None where it is not there."""
        wanted = Key("", "Secret", seen.NAMESPACE, name)
        with self._named():
            found = next((each.raw for each in self._read().text.documents() if each.key == wanted), None)
        return None if found is None else secret_text(found, key)

    def logs(self, namespace: str, pod: str, *, follow: bool) -> Iterator[bytes]:
        """Raises Refusal: nothing runs in a file."""
        raise Refusal("a state file has no pods that write; `logs` is for live clusters")

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Keeps other commands from writing until the end, so that what is read within it is still so when written."""
        with contextlib.ExitStack() as stack:
            if not self._held:
                with self._named():
                    stack.enter_context(disk.locked(self._target(), self._wait))
            self._held += 1
            try:
                yield
            finally:
                self._held -= 1

    def _target(self) -> Path:
        try:
            return self.path.resolve()
        except (OSError, RuntimeError):
            raise Refusal("it is a symbolic link that leads nowhere") from None

    def _bytes(self) -> bytes:
        data = disk.read(self.path)
        if data is None and not self._create:
            # Where even the folder is not there, the name is mistyped rather than new.
            hint = "; `kubectl runs --state FILE submit -f MANIFEST` makes one" if self.path.parent.is_dir() else ""
            raise Refusal(f"there is no such file{hint}")
        return data or b""

    def _read(self, wanted: str | None = None) -> "_Read":
        """The file as it is now. Raises Refusal where that is not the wanted revision."""
        data = self._bytes()
        last = self._last if self._last is not None and self._last.data == data else None
        revision = (last.revision if last else "") or revision_of(data)
        if wanted not in {None, revision}:
            raise Refusal("it was changed by somebody else in the meantime; run the command again")
        text = last.text if last else document.parse(data, json=self.path.suffix == ".json")
        return _Read(data, revision, text)

    def _first_seen(self, each: document.Document) -> bytes | msgspec.Raw:
        value = edits.seen(each, self.at)
        return each.raw if value is None else msgspec.json.encode(value)

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        """Says of a refusal that names no object that it is about this file."""
        try:
            yield
        except Refusal as refusal:
            raise refusal if refusal.subject else refusal.about(str(self.path)) from None


def revision_of(data: bytes) -> str:
    """What identifies a state: SHA-256 of the file's bytes, hex."""
    return hashlib.sha256(data).hexdigest()
