"""Worlds of the cases on a live cluster: the words of `tests.support.worlds`, behind them an API server."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Self

import pytest

from cronjobs.cycle import run_cycle
from cronjobs.deadline import planner
from exporters.lake.lake import Lake
from exporters.plans import planjson
from jobtree.api import API_VERSION, KINDS, LABEL_RUN
from jobtree.cli.common.args import Options
from jobtree.cluster.live.cluster import LiveCluster
from jobtree.world.memory import seen
from tests.kube.bench.kube import Kube
from tests.kube.live import api
from tests.support import invariants
from tests.support.commands import Output, kubectl_runs
from tests.support.documents import Document
from tests.support.times import T0, unix
from tests.support.worlds import Cycle, State, World

_CORE = ("Node", "Pod")
_SYSTEM = ("ConfigMap", "Secret")


class LiveWorld(World):
    """A world whose objects lie on an API server without kubelets.

    Of the times that its Runs tell only the order counts: by its clock they are a second apart where their names would
    say another one."""

    def __init__(self, kube: Kube, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        super().__init__(folder / "cluster.yaml")
        self.kube = kube
        self._last = (0, "")
        kube.namespace(seen.NAMESPACE)

    def state(self) -> State:
        """What the server says now."""
        self._create()
        found = [_whole("v1", kind, each) for kind in _CORE for each in self.kube.objects("v1", kind)]
        return State(found + [_whole(API_VERSION, kind, each) for kind in KINDS for each in self.kube.ours(kind)])

    def edit(self, kind: str, name: str, **patch: Any) -> Self:
        """A merge patch, of a Node's status through its subresource; of what gets a time of deletion, that deletion."""
        self._create()
        place = _place(kind)
        status = patch.pop("status", None)
        is_deleted = patch.get("metadata", {}).pop("deletionTimestamp", None) is not None
        if patch:
            self.kube.patch(*place, name, patch)
        if is_deleted:
            self.kube.delete(*place, name)
        if status is not None:
            self.kube.patch(*place, name, {"status": status}, subresource="status")
        return self

    def delete(self, kind: str, name: str) -> Self:
        """Deletes an object, in whichever namespace it is."""
        self._create()
        version, *_ = _place(kind)
        for each in self.kube.objects(version, kind):
            if each["metadata"]["name"] == name:
                self.kube.delete(version, kind, each["metadata"].get("namespace", ""), name, grace=0)
        return self

    def runs(self, *args: str | Path, at: str | None = None, stdin: str = "") -> Output:
        """A command, as admin, where the clock says ``at``.

        ``complete``, which is a file's alone: the pods of these runs succeed.
        """
        self._create()
        command, *names = map(str, args)
        if command == "complete":
            for pod in self.kube.objects("v1", "Pod", label_selector=f"{LABEL_RUN} in ({','.join(names)})"):
                where = pod["metadata"]["namespace"], pod["metadata"]["name"]
                self.kube.patch("v1", "Pod", *where, {"status": {"phase": "Succeeded"}}, subresource="status")
            return Output(0, "", "")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KUBECONFIG", str(self.kube.kubeconfig()))
            patch.delenv("KUBECTL_RUNS_STATE", raising=False)
            patch.setattr(Options, "time", unix(at or T0))
            return kubectl_runs(*args, stdin=stdin)

    def cycle(self, at: str = T0, *, truncated: bool = False) -> Cycle:
        """One planning cycle, which must succeed; the invariants are asserted on what it leaves."""
        before = self.state().documents
        cluster = LiveCluster(api(self.kube), unix(at))
        result = run_cycle(cluster, unix(at), Lake(str(self.lake)), planner())
        after = self.state().documents
        invariants.check(before, after, unix(at))
        assert result.plan is not None
        assert result.plan.truncated == truncated
        return Cycle(after, Output(0, "", ""), result.plan, planjson.encode(result.plan))

    def _create(self) -> None:
        for document in sorted(self._new, key=_created):
            name = document["metadata"]["name"]
            if document["kind"] == "Run" and name < self._last[1]:
                self.kube.until(lambda: int(time.time()) > self._last[0])
            if namespace := document["metadata"].get("namespace"):
                self.kube.namespace(namespace)
            made = {key: value for key, value in document.items() if key != "status" or document["kind"] == "Node"}
            if document["kind"] == "Pod":  # a server takes none without an image
                containers = [{"image": "pause", **each} for each in made["spec"]["containers"]]
                made = {**made, "spec": {**made["spec"], "containers": containers}}
            self.kube.create(made)
            if document["kind"] == "Run":
                self._last = int(time.time()), name  # the server's stamp is of this second at the latest
        self._new = []


def _place(kind: str) -> tuple[str, str, str]:
    """API version, kind and namespace of the objects that worlds speak of."""
    version = "v1" if kind in (*_CORE, *_SYSTEM) else API_VERSION
    return version, kind, seen.NAMESPACE if kind in _SYSTEM else "default"


def _created(document: Document) -> str:
    """What comes after what: a server says itself when an object was created, so Runs are made in their order."""
    return str(document["metadata"].get("creationTimestamp", "9")) if document["kind"] == "Run" else ""


def _whole(api_version: str, kind: str, item: Document) -> Document:
    return {**item, "apiVersion": api_version, "kind": kind}
