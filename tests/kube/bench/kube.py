"""A running Kubernetes as tests see it: clients, accounts, nodes, and the way back to an empty cluster."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeVar

import urllib3
import yaml
from kubernetes import client
from kubernetes.client import ApiClient, ApiException, CoreV1Api
from kubernetes.dynamic import DynamicClient

from jobtree.api import API_VERSION, KINDS
from jobtree.api.crds.crds import generate
from tests.kube.bench.processes import Processes

Object = dict[str, Any]
_T = TypeVar("_T")

NOT_NAMESPACED: Final = frozenset({"Node", "Namespace", *(name for name, kind in KINDS.items() if not kind.NAMESPACED)})
_SWEPT: Final = (
    ("batch/v1", "CronJob"), ("batch/v1", "Job"), ("policy/v1", "PodDisruptionBudget"), ("v1", "Pod"),
    ("v1", "Service"), ("v1", "ConfigMap"), ("v1", "Secret"), ("v1", "Event"), ("coordination.k8s.io/v1", "Lease"),
    *((API_VERSION, kind) for kind in KINDS), ("v1", "Node"),
)  # fmt: skip
"""Kinds of which `Kube.reset` leaves nothing, in this order."""
_SYSTEM: Final = frozenset({"kube-system", "kube-node-lease"})
_KEPT: Final = frozenset({"kube-root-ca.crt", "kubernetes", "extension-apiserver-authentication"})


@dataclass
class Kube:
    """A running bench with all CRDs, or without ``crds``. ``admin``: a client that may do everything; ``closing``: all
    that a test opened, which ends with it.
    """

    processes: Processes
    crds: bool = True
    closing: ExitStack = field(default_factory=ExitStack)
    is_empty: bool = True
    _made: list[Any] = field(default_factory=list)
    _creates: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.admin = self._client("admin")
        self.core = CoreV1Api(self.admin)
        self._dynamic: DynamicClient | None = None
        if self.crds:
            self.install_crds()

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return self.processes.url

    def client(self, token: str) -> ApiClient:
        """A client with this bearer token: of `processes.USERS` (`admin`, `alice`, `bob`), or from `account`.

        It is closed at the end of the test.
        """
        made = self._client(token)
        self.closing.callback(made.close)
        return made

    def _client(self, token: str) -> ApiClient:
        configuration = client.Configuration()
        configuration.host, configuration.ssl_ca_cert = self.url, str(self.processes.ca)
        configuration.api_key = {"authorization": f"Bearer {token}"}
        configuration.retries = urllib3.Retry(
            total=8, backoff_factor=0.1, status_forcelist=(429, 503), allowed_methods=None, raise_on_status=False
        )  # a server that has just begun is busy for a while
        return ApiClient(configuration)

    def kubeconfig(self, token: str = "admin", *, server: str = "", namespace: str = "default") -> Path:
        """A kubeconfig file for this bearer token; ``server``: a proxy before the API server."""
        name = f"user-{abs(hash((token, server, namespace)))}"
        return self.processes.kubeconfig(token, name, server=server, namespace=namespace)

    def account(self, namespace: str, name: str) -> str:
        """The token of a ServiceAccount, which is made (with its namespace) where it is not there."""
        self.namespace(namespace)
        account = client.V1ServiceAccount(metadata=client.V1ObjectMeta(name=name))
        with suppress_conflict():
            self.core.create_namespaced_service_account(namespace, account)
        asked = client.AuthenticationV1TokenRequest(spec=client.V1TokenRequestSpec(audiences=[]))
        told = self.core.create_namespaced_service_account_token(name, namespace, asked)
        assert told.status is not None
        return str(told.status.token)

    def namespace(self, name: str, **labels: str) -> None:
        """Makes a namespace that can hold pods; it stays for all tests, since one takes 5 s to go."""
        with suppress_conflict():
            self.core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=name, labels=labels)))
        if not self.processes.thin:
            self.until(lambda: self.find("v1", "ServiceAccount", name, "default"))

    def kind(self, api_version: str, kind: str) -> Any:
        """The dynamic client's resource of a kind."""
        if self._dynamic is None:
            cache = str(self.processes.folder / "discovery.json")
            self._dynamic = DynamicClient(self.admin, cache_file=cache)  # type: ignore[no-untyped-call]
        return self._dynamic.resources.get(api_version=api_version, kind=kind)

    def create(self, *documents: Mapping[str, Any]) -> list[Object]:
        """Creates objects as admin and returns them as stored. A status given with one of our kinds is set too.

        What `reset` does not sweep (roles, bindings, policies …) is deleted at the end of the test.
        """
        return [self._create(dict(each)) for each in documents]

    def load(self, text: str) -> list[Object]:
        """`create` of documents in YAML."""
        return self.create(*(each for each in yaml.safe_load_all(text) if each))

    def nodes(self, count: int, *, prefix: str = "n", gpus: int = 8, domain: str = "d1", **labels: str) -> list[str]:
        """Makes nodes ``PREFIX1 …`` that kwok keeps Ready, with the labels of spec §2; returns their names."""
        names = [f"{prefix}{number}" for number in range(1, count + 1)]
        made = [node(name, gpus=gpus, domain=domain, **labels) for name in names]
        for each in made if not self.processes.thin else []:
            each["status"].pop("conditions")  # its kubelet says that, with the address at which it answers
        self.create(*made)
        if not self.processes.thin:
            self.until(lambda: all(not self.get("v1", "Node", "", name)["spec"].get("taints") for name in names))
        return names

    def get(self, api_version: str, kind: str, namespace: str, name: str) -> Object:
        """One object. Raises ApiException."""
        found = self.kind(api_version, kind).get(name=name, **_where(kind, namespace))
        return dict(found.to_dict())

    def find(self, api_version: str, kind: str, namespace: str, name: str) -> Object | None:
        """One object, None where it is not there."""
        try:
            return self.get(api_version, kind, namespace, name)
        except ApiException as error:
            if error.status != 404:
                raise
            return None

    def objects(self, api_version: str, kind: str, **selection: str) -> list[Object]:
        """All objects of a kind, of all namespaces, sorted by namespace and name."""
        items = [dict(each) for each in self.kind(api_version, kind).get(**selection).to_dict()["items"]]
        return sorted(items, key=lambda each: (each["metadata"].get("namespace", ""), each["metadata"]["name"]))

    def ours(self, kind: str) -> list[Object]:
        """All objects of one of our kinds."""
        return self.objects(API_VERSION, kind)

    def patch(
        self, api_version: str, kind: str, namespace: str, name: str, body: Object, *, subresource: str = ""
    ) -> Object:
        """A merge patch, as admin: repeated while others write the object at the same moment."""
        resource = self.kind(api_version, kind)
        resource = resource.subresources[subresource] if subresource else resource
        where = _where(kind, namespace)

        def patched() -> Object:
            with suppress_conflict():
                done = resource.patch(name=name, body=body, content_type="application/merge-patch+json", **where)
                return dict(done.to_dict())
            return {}

        return dict(self.until(patched))

    def delete(self, api_version: str, kind: str, namespace: str, name: str, *, grace: int | None = None) -> None:
        """Deletes one object; it is no error if it is gone."""
        body = {} if grace is None else {"gracePeriodSeconds": grace}
        with suppress_missing():
            self.kind(api_version, kind).delete(name=name, body=body, **_where(kind, namespace))

    def until(self, condition: Callable[[], _T], within: float = 180) -> _T:
        """Waits until ``condition`` says something true, and returns that. Raises AssertionError where it is late."""
        end = time.monotonic() + within
        while not (found := condition()):
            assert time.monotonic() < end, f"not so within {within} s"
            time.sleep(0.02)
        return found

    def install_crds(self) -> None:
        """Creates the CRDs and waits until they are served."""
        crds = client.ApiextensionsV1Api(self.admin)
        for text in generate().values():
            with suppress_conflict():
                crds.create_custom_resource_definition(yaml.safe_load(text))
        self.until(lambda: all(map(_is_established, crds.list_custom_resource_definition().items)))

    def close(self) -> None:
        """Closes all clients that were made."""
        self.closing.callback(self.admin.close)
        self.closing.close()

    def reset(self) -> None:
        """Leaves an empty cluster: finalizers are taken off, pods killed without grace. Namespaces stay.

        ``is_empty`` says whether it came to its end. What controllers made of what went is swept in a further round.
        """
        self.is_empty = False
        self.closing.close()
        for made in reversed(self._made):
            with suppress_missing():
                made()
        self._made.clear()
        while [kind for api_version, kind in _SWEPT if self._sweep(api_version, kind)]:
            pass
        self.is_empty = True

    def _sweep(self, api_version: str, kind: str) -> bool:
        """Takes all objects of a kind away, and those that others make meanwhile, as Events; whether there were any."""
        if not self._delete_all(api_version, kind):
            return False
        self.until(lambda: not self._delete_all(api_version, kind))
        return True

    def _delete_all(self, api_version: str, kind: str) -> bool:
        """Deletes what there is of a kind; whether there was any."""
        items = [each for each in self.objects(api_version, kind) if _is_swept(kind, each)]
        for each in items:
            meta = each["metadata"]
            if meta.get("finalizers"):
                with suppress_missing():
                    off = {"metadata": {"finalizers": None}}
                    self.patch(api_version, kind, meta.get("namespace", ""), meta["name"], off)
            self.delete(api_version, kind, meta.get("namespace", ""), meta["name"], grace=0 if kind == "Pod" else None)
        return bool(items)

    def _create(self, document: Object) -> Object:
        resource = self.kind(document["apiVersion"], document["kind"])
        where = _where(document["kind"], document["metadata"].get("namespace", "default"))
        name, status = document["metadata"]["name"], document.get("status")
        mark = f"bench-{next(self._creates)}"
        made = self.until(lambda: _created(resource, document, where, mark))
        if status and document["apiVersion"] == API_VERSION:
            body = {"status": status}
            made = self.patch(API_VERSION, document["kind"], made["metadata"].get("namespace", ""), name, body,
                              subresource="status")  # fmt: skip
        if (document["apiVersion"], document["kind"]) not in _SWEPT:
            self._made.append(lambda: resource.delete(name=name, **where))
        return dict(made)


def _created(resource: Any, document: Object, where: Mapping[str, str], mark: str) -> Object:
    """The object that was created, or is there already from a try whose answer was lost, as its field manager ``mark``
    tells. Empty while another one of its name still goes away.
    """
    try:
        made = resource.create(body=document, field_validation="Strict", field_manager=mark, **where)
    except ApiException as error:
        if error.status != 409:
            raise
        with suppress_missing():
            there = dict(resource.get(name=document["metadata"]["name"], **where).to_dict())
            if mark in {each["manager"] for each in there["metadata"].get("managedFields", ())}:
                return there
            if not there["metadata"].get("deletionTimestamp"):
                raise
        return {}
    return dict(made.to_dict())


def node(name: str, *, gpus: int = 8, domain: str = "d1", **labels: str) -> Object:
    """A node of ``gpus`` H100s that is Ready, as its kubelet would report it. ``labels`` replace those of spec §2.

    Their names as in Python: ``gpu_flavor``, ``fabric_domain``.
    """
    known = {"region": "us-west", "cluster": "c1", "fabric.domain": domain, "gpu.flavor": "H100-80GB", "type": "kwok"}
    known |= {key.replace("_", "."): value for key, value in labels.items()}
    amounts = {"cpu": "128", "memory": "1Ti", "pods": "110", "nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {key: value for key, value in known.items() if value}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
        },
    }


def _where(kind: str, namespace: str) -> dict[str, str]:
    namespaced = kind not in NOT_NAMESPACED and not kind.startswith(("Cluster", "Validating", "CustomResource"))
    return {"namespace": namespace or "default"} if namespaced else {}


def _is_swept(kind: str, item: Object) -> bool:
    meta = item["metadata"]
    token = kind == "Secret" and item.get("type", "").startswith("kubernetes.io/service-account")
    return meta["name"] not in _KEPT and not token and meta.get("namespace") not in _SYSTEM


def _is_established(crd: Any) -> bool:
    return any((each.type, each.status) == ("Established", "True") for each in crd.status.conditions or [])


class _Passed(suppress):
    """Passes over API errors of one status."""

    def __init__(self, status: int) -> None:
        super().__init__(ApiException)
        self._status = status

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        return isinstance(error, ApiException) and error.status == self._status


def suppress_conflict() -> _Passed:
    """Passes over what is there already."""
    return _Passed(409)


def suppress_missing() -> _Passed:
    """Passes over what is not there."""
    return _Passed(404)


def names(objects: Iterable[Object]) -> list[str]:
    """The names of objects, in their order."""
    return [each["metadata"]["name"] for each in objects]
