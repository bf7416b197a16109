"""A live cluster as `protocol.Cluster`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from jobtree.api import Refusal, Time
from jobtree.api.kinds.run import Run
from jobtree.cluster.live import lists, refused
from jobtree.cluster.live.client import Api, ApiError, refusal_of
from jobtree.cluster.live.lists import Forbidden, Found, Item, Stamp
from jobtree.cluster.live.lock import Lock
from jobtree.cluster.live.paths import path
from jobtree.cluster.live.writing import Writer
from jobtree.cluster.protocol import Ref, Write
from jobtree.cluster.secret_text import secret_text
from jobtree.world.collector import collector_paused
from jobtree.world.memory import seen
from jobtree.world.reading.intake import Intake, Key, Known, Notice, intake, is_read

READ: Final = (
    ("Plan", ""), ("Policy", ""), ("Budget", ""), ("Run", ""), ("Lease", ""), ("Reservation", ""), ("Node", ""),
    ("Pod", ""), ("ConfigMap", seen.NAMESPACE),
)  # fmt: skip
"""What is listed, with the namespace where not all are."""


class LiveCluster:
    """The cluster behind ``api`` at Unix second ``at``; ``lock``: of a planner, which `hold` takes.

    People hold nothing: what they write is checked against what they read, object by object. Who may not list
    everything sees the namespace ``own`` alone, by default the context's.
    """

    def __init__(self, api: Api, at: int, lock: Lock | None = None, *, own: str | None = None) -> None:
        self.api = api
        self._own = own or api.namespace
        self.at = Time(at)
        self._lock = lock
        self._held = 0
        self._stamps: dict[Key, Stamp] = {}
        self._revision = ""
        self._runs: Sequence[Run] = ()
        self._items: Mapping[Key, Item] = {}
        self._known = Known()
        self.left_out: Sequence[Notice] = ()

    @property
    def namespace(self) -> str:
        """Of who names none: that of the kubeconfig's context."""
        return self.api.namespace

    @property
    def runs_pods(self) -> bool:
        """True: kubelets run what Pod objects say."""
        return True

    def read(self, without: Key | None = None) -> Intake:
        """Everything at one revision. Raises Refusal where that cannot be had whole."""
        with collector_paused():
            found, hidden = self._found()
            self._items, self._stamps, self._revision = found.items, found.stamps, found.revision
            objects = [each for each in found.objects if is_read(each[0]) and each[0] != without]
            objects += refused.stand_ins(objects)
            read = intake(objects, found.revision, self._known, self.at)
            self._runs = read.runs
            return replace(read, namespace=self.namespace, hidden=hidden)

    def _found(self) -> tuple[Found, tuple[str, ...]]:
        """What is listed, and in words what this user may not list."""
        try:
            return lists.read(self.api, READ, self._items), ()
        except Forbidden:
            if self._lock is not None:  # a planner sees everything, or plans nothing
                raise
        kinds, hidden = lists.scope(self.api, READ, self._own)
        return lists.read(self.api, kinds, self._items), hidden

    def write(self, writes: Sequence[Write], revision: str) -> None:
        """Applies the writes, in order, on top of what was read last.

        Raises Refusal where one cannot be done; those before it are, and a Plan that was begun is finished by the next
        cycle (spec §8). ``left_out`` names pods that the server did not take.
        """
        if revision != self._revision:
            raise Refusal("the cluster was read again since this was decided; run the command again")
        writer = Writer(self.api, self._stamps)
        try:
            writer.all(writes)
        finally:
            self.left_out = writer.left_out
        if any(each.ref.kind == "Plan" for each in writes):  # a cycle's
            writer.all(list(refused.records(self._runs, writes, self.left_out, self.at)))

    def secret(self, name: str, key: str) -> str | None:
        """A text of a Secret in the planner's namespace; None where it is not there. Raises Refusal."""
        try:
            found = self.api.find(path(Ref("Secret", seen.NAMESPACE, name)))
        except ApiError as error:
            raise refusal_of(error, f"Secret {seen.NAMESPACE}/{name} cannot be read") from None
        return None if found is None else secret_text(found, key)

    def logs(self, namespace: str, pod: str, *, follow: bool) -> Iterator[bytes]:
        """The lines that a pod has written, and with ``follow`` those that it writes. Raises Refusal."""
        where = f"{path(Ref('Pod', namespace, pod))}/log"
        try:
            yield from self.api.stream(where, follow=follow)
        except ApiError as error:
            raise refusal_of(error, f"the log of pod {namespace}/{pod} cannot be read") from None

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Keeps other planners away until the end, where this is one."""
        if self._lock is not None and not self._held:
            self._lock.take()
        self._held += 1
        try:
            yield
        finally:
            self._held -= 1
            if self._lock is not None and not self._held:
                self._lock.give()
