"""One planner at a time: a Lease of coordination.k8s.io as lock, and a fence before every write.

The holder renews it while it works. All times in it are the API server's, so machines need not agree on theirs. The
fence lets a write through only while so much of the time is left that the server has given it up before anybody else
may hold the lock: a planner that was asleep cannot write into another one's cycle.
"""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from jobtree.api import Refusal
from jobtree.cluster.live.client import LONGEST, Api, ApiError, refusal_of

NAME: Final = "jobtree-planner"
"""The Lease's name, in the planner's namespace."""
SECONDS = 40
"""How long the lock stays with a holder that is not heard of any more."""
_MARGIN: Final = LONGEST + 2


class Lock:
    """The planners' lock in ``namespace``. ``wait``: seconds to wait for another holder (default: until late)."""

    def __init__(self, api: Api, namespace: str, *, seconds: int | None = None, wait: float | None = None) -> None:
        self._api, self._seconds = api, SECONDS if seconds is None else seconds
        self._wait = self._seconds + 5 if wait is None else wait
        self._leases = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self.holder = f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}"
        self._until = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def take(self) -> None:
        """Waits for the lock, and renews it from then on. Raises Refusal naming who holds it."""
        end = time.monotonic() + self._wait
        self._stop.clear()  # set since it was given back: waiting would be none
        while (other := self._try()) is not None:
            if time.monotonic() >= end:
                raise Refusal(
                    f"another planner is at work: {other} holds the lock {NAME}; one cycle at a time is enough"
                )
            self._stop.wait(min(1.0, self._seconds / 10))
        self._api.fence = self.fence
        self._thread = threading.Thread(target=self._renew, daemon=True)
        self._thread.start()

    def give(self) -> None:
        """Gives it back: the next planner need not wait."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self._until = 0.0
        with suppress(ApiError, Refusal):  # then it is late by itself, and the next planner waits for that
            lease = self._get()
            if lease is not None and lease["spec"].get("holderIdentity") == self.holder:
                lease["spec"]["holderIdentity"] = ""
                self._put(lease)

    def fence(self) -> None:
        """Raises Refusal where the lock is not surely ours until a write that begins now has its end."""
        if time.monotonic() + min(_MARGIN, self._seconds / 2) > self._until:
            raise Refusal(
                f"the lock {NAME} could not be renewed in time, so nothing more is written; the next cycle goes on"
            )

    def _renew(self) -> None:
        while not self._stop.wait(self._seconds / 5):
            with suppress(ApiError, Refusal):  # the fence tells, and the next turn tries again
                if self._try() is not None:
                    self._until = 0.0

    def _try(self) -> str | None:
        """Takes or renews the lock; who holds it where that is another."""
        began = time.monotonic()
        try:
            lease = self._get()
            if lease is None:
                body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": NAME}, "spec": {}}
                lease = msgspec.json.decode(self._api.call("POST", self._leases, body, fenced=False))
            spec: dict[str, Any] = lease.setdefault("spec", {})
            holder = spec.get("holderIdentity") or ""
            if holder not in {"", self.holder} and not self._is_late(spec):
                return str(holder)
            if holder != self.holder:
                spec["leaseTransitions"] = spec.get("leaseTransitions", 0) + 1
                spec["acquireTime"] = self._stamp()
            spec |= {"holderIdentity": self.holder, "leaseDurationSeconds": self._seconds, "renewTime": self._stamp()}
            self._put(lease)
        except ApiError as error:
            if error.status == 409:  # somebody was faster
                return "another planner"
            raise refusal_of(error, f"the lock {NAME} cannot be taken") from None
        self._until = began + self._seconds
        return None

    def _get(self) -> dict[str, Any] | None:
        lease = self._api.find(f"{self._leases}/{NAME}")
        return None if lease is None else msgspec.json.decode(lease, type=dict[str, Any])

    def _put(self, lease: dict[str, Any]) -> None:
        self._api.call("PUT", f"{self._leases}/{NAME}", lease, fenced=False)

    def _stamp(self) -> str:
        return datetime.fromtimestamp(self._api.now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _is_late(self, spec: dict[str, Any]) -> bool:
        """Whether the holder was not heard of for as long as it said itself."""
        renewed = datetime.fromisoformat(spec.get("renewTime") or "1970-01-01T00:00:00Z").timestamp()
        return self._api.now > renewed + int(spec.get("leaseDurationSeconds") or 0)
