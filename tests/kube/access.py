"""The roles and admission policies of the chart on a bench, and people who try what they may not."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml
from kubernetes.client import ApiException

from jobtree.cluster.live.client import Api, ApiError
from tests.kube.bench.kube import Kube, Object, suppress_conflict, suppress_missing
from tests.kube.live import api

FILES: Final = Path(__file__).parents[2] / "deploy/helm/gpu-fleet/files"
SYSTEM: Final = "jobtree-system"
PLANNER: Final = "jobtree"
MERGE: Final = "application/merge-patch+json"
_VALUES: Final = {".Release.Namespace": SYSTEM, '.Values.serviceAccount.name | default "jobtree"': PLANNER}


def rendered(name: str) -> list[Object]:
    """The documents of one of the chart's files, as Helm renders them with its defaults."""
    text = (FILES / name).read_text(encoding="utf-8")
    filled = re.sub(r"{{ (.*?) }}", lambda match: _VALUES[match[1]], text)
    return [each for each in yaml.safe_load_all(filled) if each]


def bound(user: str, role: str, namespace: str) -> Object:
    """A RoleBinding of ``user`` to the ClusterRole ``role`` in ``namespace``."""
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1", "kind": "RoleBinding",
        "metadata": {"name": f"{user}-{role}", "namespace": namespace},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }  # fmt: skip


def gpu_pod(name: str = "mine", *, gpus: int = 1, resource: str = "nvidia.com/gpu", **metadata: Any) -> Object:
    """A pod that asks for GPUs; with none of them an ordinary one."""
    limits = {"resources": {"limits": {resource: gpus}}} if gpus else {}
    container = {"name": "main", "image": "pause", **limits}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 0},
    }  # fmt: skip


@dataclass
class Person:
    """Somebody at the API server: each try gives the status and the server's words."""

    way: Api

    def tries(self, method: str, path: str, body: Any = None, *, kind: str = "application/json") -> tuple[int, str]:
        """One call; 200 where it is allowed."""
        try:
            self.way.get(path) if method == "GET" else self.way.call(method, path, body, kind=kind)
        except ApiError as error:
            return error.status, error.message
        return 200, ""


@dataclass
class Guarded:
    """A bench with the chart's roles and policies; alice is admin of team-a, bob a researcher of team-b."""

    kube: Kube
    planner: str
    _made: list[Object] = field(default_factory=list)

    def person(self, name: str) -> Person:
        """A user of that name."""
        return Person(api(self.kube, token=name))

    def until_enforced(self) -> None:
        """Waits until the policies, which the API server learns of a moment later, refuse what they are to refuse."""
        admin, where = self.person("admin"), "/api/v1/namespaces/team-a/pods?dryRun=All&x="
        marked = gpu_pod(gpus=0, labels={"rq.davidlangworthy.io/run": "x"})
        for body in (gpu_pod(), marked):
            self.kube.until(lambda body=body: admin.tries("POST", where, body)[0] == 403)  # type: ignore[misc]


@contextmanager
def guarded(kube: Kube) -> Iterator[Guarded]:
    """Puts everything in place until the end."""
    token = kube.account(SYSTEM, PLANNER)
    for namespace in ("team-a", "team-b"):
        kube.namespace(namespace)
    documents = [*rendered("rbac.yaml"), *rendered("admission.yaml")]
    documents += [bound("alice", "admin", "team-a"), bound("bob", "jobtree-researcher", "team-b")]
    try:
        for each in documents:
            with suppress_conflict():
                resource = kube.kind(each["apiVersion"], each["kind"])
                resource.create(body=each, field_validation="Strict", **_namespace(each))
        made = Guarded(kube, token)
        made.until_enforced()
        if not kube.processes.thin:
            kube.until(lambda: _is_aggregated(kube))
        yield made
    finally:
        for each in reversed(documents):
            with suppress_missing():
                kube.kind(each["apiVersion"], each["kind"]).delete(name=each["metadata"]["name"], **_namespace(each))


def _namespace(document: Object) -> dict[str, str]:
    namespace = document["metadata"].get("namespace")
    return {"namespace": namespace} if namespace else {}


def _is_aggregated(kube: Kube) -> bool:
    """Whether Kubernetes' own admin has what the researcher's role adds to it."""
    try:
        rules = kube.get("rbac.authorization.k8s.io/v1", "ClusterRole", "", "admin").get("rules") or []
    except ApiException:
        return False
    return any("rq.davidlangworthy.io" in (each.get("apiGroups") or []) for each in rules)
