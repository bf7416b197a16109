"""An eye that is not Jobtree's: every state of every Lease as the API server tells it, and slots held twice in any."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import urllib3
from kubernetes import client, watch

from jobtree.api import GROUP
from tests.kube.bench.kube import Kube, Object


class Watcher:
    """``doubled``: slots that two open Active leases held at once, in any state that was seen; ``seen``: how many."""

    def __init__(self) -> None:
        self.doubled: set[str] = set()
        self.seen = 0
        self._open: dict[str, list[str]] = {}

    def saw(self, event: str, lease: Object) -> None:
        """Notes one event."""
        self.seen += 1
        name, spec = lease["metadata"]["uid"], lease["spec"]
        is_open = event != "DELETED" and not lease.get("status", {}).get("closed")
        if is_open and spec["slice"].get("role", "Active") == "Active":
            self._open[name] = spec["slice"]["nodes"]
        else:
            self._open.pop(name, None)
        held = Counter(slot for slots in self._open.values() for slot in slots)
        self.doubled |= {slot for slot, count in held.items() if count > 1}


@contextmanager
def watching(kube: Kube) -> Iterator[Watcher]:
    """Watches all Leases until the end."""
    eye, stream = Watcher(), watch.Watch()  # type: ignore[no-untyped-call]
    api = client.CustomObjectsApi(kube.client("admin"))
    ended = threading.Event()

    def run() -> None:
        while not ended.is_set():
            try:
                lists = api.list_cluster_custom_object
                told = stream.stream(lists, GROUP, "v1", "gpuleases", timeout_seconds=3, _request_timeout=10)  # type: ignore[no-untyped-call]
                for event in told:
                    eye.saw(event["type"], event["object"])
            except urllib3.exceptions.HTTPError:  # the API server was killed by the test
                continue

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield eye
    finally:
        ended.set()
        stream.stop()  # type: ignore[no-untyped-call]
        thread.join()
