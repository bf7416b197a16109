"""Cycles on the bench, as a planner runs them, and what is to be seen of them."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kubernetes.client import Configuration

from cronjobs.cycle import CycleResult, run_cycle
from cronjobs.deadline import Planner, planner
from exporters.lake.lake import Lake
from jobtree.api import API_VERSION, LABEL_RUN
from jobtree.cluster.live.client import Api
from jobtree.cluster.live.cluster import LiveCluster
from jobtree.cluster.live.lock import Lock
from jobtree.cluster.live.paths import system
from jobtree.world.memory import seen
from jobtree.world.reading.intake import Intake
from tests.kube.bench.kube import Kube, Object

FLAVOR = "H100-80GB"


def budget(owner: str, gpus: int, **fields: Any) -> Object:
    """A Budget of ``owner`` with one envelope of ``gpus``, anywhere, as in the cases."""
    envelope = {"name": "pool", "flavor": FLAVOR, "selector": {"region": "*"}, "concurrency": gpus, **fields}
    name = owner.replace(":", "-")
    spec = {"owner": owner, "envelopes": [envelope]}
    return {"apiVersion": API_VERSION, "kind": "Budget", "metadata": {"name": name}, "spec": spec}


def run(
    name: str, gpus: int, *, owner: str = "org:a", annotations: dict[str, str] | None = None, **spec: Any
) -> Object:
    """A Run of ``gpus``; ``annotations``: of its pods, such as ``{"bench/succeed-after": "1s"}``."""
    resources = {"gpuType": FLAVOR, "totalGPUs": gpus, **spec.pop("resources", {})}
    body: Object = {"owner": owner, "resources": resources, **spec}
    if annotations is not None:
        pod = {"containers": [{"name": "main", "image": "pause"}], "terminationGracePeriodSeconds": 1}
        body["template"] = {"metadata": {"annotations": annotations}, "spec": pod}
    return {"apiVersion": API_VERSION, "kind": "Run", "metadata": {"name": name, "namespace": "default"}, "spec": body}


def api(kube: Kube, *, url: str = "", token: str = "admin") -> Api:
    """A client of Jobtree's; ``url``: a proxy before the API server."""
    configuration = Configuration()
    configuration.host = url or kube.url
    configuration.ssl_ca_cert = str(kube.processes.ca)
    configuration.api_key = {"authorization": f"Bearer {token}"}
    made = Api(configuration)
    kube.closing.callback(made.close)
    return made


@dataclass
class Live:
    """Cycles at the times that the clock says, each in a second of its own.

    ``url``: the way to the API server; ``token``: who the planner is.
    """

    kube: Kube
    lake: Path
    url: str = ""
    token: str = "admin"
    seconds: int = 40
    wait: float | None = None
    last: int = 0
    planner: Planner = field(default_factory=planner)

    def cluster(self, at: int | None = None) -> LiveCluster:
        """The cluster as a planner has it."""
        way = api(self.kube, url=self.url, token=self.token)
        return LiveCluster(way, at or int(time.time()), Lock(way, system(), seconds=self.seconds, wait=self.wait))

    def cycle(self, ahead: int = 0) -> CycleResult:
        """One cycle, now, or planned for so many seconds later."""
        self.kube.namespace(seen.NAMESPACE)
        at = self.kube.until(self._next_second) + ahead
        cluster = self.cluster(at)
        with cluster.hold():
            result = run_cycle(cluster, at, Lake(str(self.lake)), self.planner)
        self.last = at - ahead
        return result

    def read(self) -> Intake:
        """What is there."""
        return LiveCluster(api(self.kube), int(time.time())).read()

    def _next_second(self) -> int:
        now = int(time.time())
        return now if now > self.last else 0

    def phases(self) -> dict[str, str]:
        """Phase of each Run by name."""
        return {each["metadata"]["name"]: each.get("status", {}).get("phase", "") for each in self.kube.ours("Run")}

    def reason(self, name: str, kind: str = "Admitted") -> tuple[str, str]:
        """Reason and message of a Run's condition."""
        conditions = self.kube.get(API_VERSION, "Run", "default", name)["status"]["conditions"]
        return next((each.get("reason", ""), each.get("message", "")) for each in conditions if each["type"] == kind)

    def pods(self, name: str) -> list[Object]:
        """The pods of a Run, by rank."""
        return self.kube.objects("v1", "Pod", label_selector=f"{LABEL_RUN}={name}")

    def until(self, condition: Callable[[], Any], within: float = 240) -> None:
        """Cycles until the condition holds."""
        end = time.monotonic() + within
        while not condition():
            assert time.monotonic() < end, f"not so within {within} s of cycles"
            self.cycle()


def open_leases(kube: Kube) -> list[Object]:
    """Leases that are not closed."""
    return [each for each in kube.ours("Lease") if not each.get("status", {}).get("closed")]


def doubled(kube: Kube) -> list[str]:
    """Slots that two open Active leases hold."""
    active = [each for each in open_leases(kube) if each["spec"]["slice"].get("role", "Active") == "Active"]
    count = Counter(slot for each in active for slot in each["spec"]["slice"]["nodes"])
    return [slot for slot, number in count.items() if number > 1]
