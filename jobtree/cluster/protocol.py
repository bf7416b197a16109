"""Where state lives: one protocol, whatever is behind it (a state file, a live cluster).

A reader gets everything at one revision; a writer hands over a list of writes in the order of spec §8. The body of a
patch is a JSON merge patch (RFC 7386), which a file and an API server apply alike.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

import msgspec

from jobtree.api import Time
from jobtree.api.kinds.meta import name_of
from jobtree.world.reading.intake import Intake, Key, Notice


class Ref(msgspec.Struct, frozen=True):
    """One object. ``namespace`` is empty for cluster-scoped kinds."""

    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return name_of(self.kind, self.namespace, self.name)


class Write(msgspec.Struct, frozen=True):
    """One change of one object.

    ``create``: ``body`` is the whole object, and it is no error if the very same object is there already, whatever
    its status has become; that one stays as it is.
    ``patch``: ``body`` is a merge patch; with ``subresource="status"`` only its ``status`` counts, and
    without it has none.
    ``replace``: ``body`` is the whole object without a status, in place of one that cannot be used; what can be read of
    that one's status, labels and annotations stays, as do its uid and creation time. Where none is, it is created. Of a
    Node ``body`` is all of it.
    ``merge``: ``body`` is a merge patch without null, or where no such object is, the object; nothing is read for it.
    ``delete``: ``body`` is empty; it is no error if the object is gone.
    """

    verb: Literal["create", "patch", "replace", "merge", "delete"]
    ref: Ref
    body: Mapping[str, Any] = msgspec.field(default_factory=dict)
    subresource: Literal["", "status"] = ""


class Cluster(Protocol):
    """State that can be read at one revision and written in order.

    ``at``: the time that objects are first seen at which state none, as in a file; where a server stamps them it does
    nothing.
    """

    at: Time

    @property
    def namespace(self) -> str:
        """The namespace of who names none."""

    @property
    def runs_pods(self) -> bool:
        """Whether what starts needs Pod objects; a file's kubelets obey without."""

    @property
    def left_out(self) -> Sequence[Notice]:
        """What the last `write` could not do for a reason of that object's alone."""

    def read(self, without: Key | None = None) -> Intake:
        """Everything a cycle needs, listed consistently. Raises Refusal when it cannot be read whole.

        ``without``: an object that counts as not there, such as a broken Policy that is to be replaced.
        """

    def write(self, writes: Sequence[Write], revision: str) -> None:
        """Apply ``writes`` on top of ``revision``.

        Raises Refusal when the state has moved on: a file then is as it was; on a live cluster what comes before the
        object in question is done.
        """

    def secret(self, name: str, key: str) -> str | None:
        """A text of a Secret in the planner's namespace; None where it is not there. No snapshot holds it."""

    def logs(self, namespace: str, pod: str, *, follow: bool) -> Iterator[bytes]:
        """The lines that a pod has written, and with ``follow`` those that it writes. Raises Refusal in a file."""

    def hold(self) -> AbstractContextManager[None]:
        """Keeps others from writing until the end: every writer of a file, the planners of a live cluster."""
