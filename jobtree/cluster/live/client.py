"""The API server as JSON bytes in and out: kubectl's rules for who and where, one policy for trying again.

The Kubernetes client gives kubeconfig, credentials and connections; its models are not used, since they cost
milliseconds an object. Every call has a time-out and every call may be repeated: what is written here can be written
twice (`writing` says how that is told from a real conflict).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import urlencode

import msgspec
import urllib3
from kubernetes.client import ApiClient, Configuration
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config
from kubernetes.config.kube_config import list_kube_config_contexts
from yaml import YAMLError

from jobtree import __version__
from jobtree.api import GROUP, Refusal

READING: Final = urllib3.Timeout(connect=5, read=30)
"""Seconds for a connection, and between two bytes of an answer."""
FOLLOWING: Final = urllib3.Timeout(connect=5, read=None)
"""The same of an answer that goes on: who writes nothing for an hour is no broken connection."""
WRITING: Final = urllib3.Timeout(connect=5, read=15)
"""The same of a write."""
LONGEST: Final = 10
"""Seconds after which the server itself gives up a write, so that none takes effect long after it was given up here."""
_BROKEN: Final = (ConfigException, YAMLError, OSError, ValueError, TypeError, KeyError, AttributeError)
"""What reading a kubeconfig raises: the client checks its parts only as it comes to them."""
IN_CLUSTER: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Status(msgspec.Struct):
    """What the API server says instead of an object."""

    message: str = ""
    reason: str = ""


class ApiError(Exception):
    """An answer that is no success. ``status``: HTTP's number; ``reason``: Kubernetes' word (`AlreadyExists`)."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(f"{status} {reason}: {message}")
        self.status, self.reason, self.message = status, reason, message


class _Fenced(urllib3.Retry):
    """What is tried again: lost connections, time-outs, and answers of a server that is busy or failing; writes too.

    ``fence`` is asked before each further try, as before the first: it raises Refusal where nothing may be written.
    """

    fence: Callable[[], None]

    def new(self, **kw: Any) -> Self:
        """What is left of the tries."""
        fresh = super().new(**kw)
        fresh.fence = self.fence
        return fresh

    def sleep(self, response: urllib3.BaseHTTPResponse | None = None) -> None:
        """Waits as long as the server says in Retry-After, else ever longer."""
        super().sleep(response)
        self.fence()


def _retries(fence: Callable[[], None]) -> urllib3.Retry:
    made = _Fenced(
        total=6, backoff_factor=0.2, backoff_max=5, backoff_jitter=0.2, status_forcelist=(429, 500, 502, 503, 504),
        allowed_methods=None, respect_retry_after_header=True, retry_after_max=20, raise_on_status=False, redirect=0,
    )  # fmt: skip
    made.fence = fence
    return made


def _open() -> None:
    """The fence of who needs no lock."""


class Api:
    """Calls of one API server as one user. ``namespace``: the context's; ``fence`` is asked before each write."""

    def __init__(self, configuration: Configuration, namespace: str = "default") -> None:
        configuration.retries = False  # each call says its own
        configuration.connection_pool_maxsize = 16
        self.namespace = namespace
        self.fence: Callable[[], None] = _open
        self.host = str(configuration.host).rstrip("/")
        self._client = ApiClient(configuration)
        self._agent = f"jobtree/{__version__}"
        self._clock = (0.0, 0.0)

    def close(self) -> None:
        """Closes the connections that are kept for further calls, whoever still refers to them (an error in a log)."""
        pools = self._client.rest_client.pool_manager.pools
        for key in pools.keys():  # noqa: SIM118 no mapping: it cannot be iterated over
            pools[key].close()
        self._client.close()  # type: ignore[no-untyped-call]

    @property
    def now(self) -> float:
        """The server's clock as its last answer told it, Unix seconds: planners on two machines share this one."""
        said, when = self._clock
        return said + time.monotonic() - when

    def get(self, path: str, **query: str | int) -> bytes:
        """The answer's bytes. Raises ApiError, and Refusal where the server cannot be reached."""
        return bytes(self._send("GET", path, query, None, "", READING).data)

    def find(self, path: str) -> bytes | None:
        """The same of an object; None where it is not there."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        kind: str = "application/json",
        fenced: bool = True,
    ) -> bytes:
        """One write with a JSON body of that content type. Raises ApiError and Refusal."""
        fence = self.fence if fenced else _open
        fence()
        asked = {"timeout": f"{LONGEST}s"}
        return bytes(self._send(method, path, asked, body, kind, WRITING, fence=fence).data)

    def stream(self, path: str, *, follow: bool) -> Iterator[bytes]:
        """The lines of a log; with ``follow`` it goes on, at whatever pace. Raises ApiError and Refusal."""
        query, timeout = ({"follow": "true"}, FOLLOWING) if follow else ({}, READING)
        answer = self._send("GET", path, query, None, "", timeout, preload=False)
        left = b""
        try:
            for piece in answer.stream():
                *lines, left = (left + piece).split(b"\n")
                yield from lines
            if left:
                yield left
        except urllib3.exceptions.HTTPError as error:
            raise self._unreachable(error) from None
        finally:
            answer.close()

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int],
        body: Any,
        kind: str,
        timeout: urllib3.Timeout,
        *,
        preload: bool = True,
        fence: Callable[[], None] = _open,
    ) -> urllib3.BaseHTTPResponse:
        headers = {"Accept": "application/json", "User-Agent": self._agent}
        self._client.update_params_for_auth(headers, [], ["BearerToken"], path, method, body)
        if body is not None:
            headers["Content-Type"] = kind
        url = f"{self.host}{path}" + (f"?{urlencode(query)}" if query else "")
        data = None if body is None else msgspec.json.encode(body)
        pool, retries = self._client.rest_client.pool_manager, _retries(fence)
        try:
            answer = pool.request(
                method, url, body=data, headers=headers, timeout=timeout, preload_content=preload, retries=retries
            )
        except urllib3.exceptions.HTTPError as error:
            raise self._unreachable(error) from None
        if date := answer.headers.get("Date"):
            self._clock = (parsedate_to_datetime(date).timestamp(), time.monotonic())
        if answer.status >= 300:
            raise _error(answer.status, answer.data)
        return answer

    def _unreachable(self, error: Exception) -> Refusal:
        cause = getattr(error, "reason", None) or error
        said = " ".join(str(cause).split())
        return Refusal(f"the API server at {self.host} does not answer ({type(cause).__name__}: {said})")


def _error(status: int, data: bytes) -> ApiError:
    try:
        told = msgspec.json.decode(data, type=Status)
    except msgspec.DecodeError:  # a proxy's page, say
        told = Status(message=data[:200].decode(errors="replace"))
    return ApiError(status, told.reason, told.message)


def connect(context: str | None = None) -> Api:
    """The API server that kubectl would use: ``KUBECONFIG``, ~/.kube/config, in a pod its own account.

    ``context``: another one than the current. Raises Refusal where there is none.
    """
    configuration = Configuration()
    named = os.environ.get("KUBECONFIG")
    files = [Path(each).expanduser() for each in (named or "~/.kube/config").split(os.pathsep) if each]
    there = os.pathsep.join(str(each) for each in files if each.exists())
    if not there and not named and context is None and (IN_CLUSTER / "token").exists():
        load_incluster_config(configuration)  # type: ignore[no-untyped-call]
        return Api(configuration, (IN_CLUSTER / "namespace").read_text().strip())
    if not there:
        where = f"KUBECONFIG names {named}, which is not there" if named else "there is no ~/.kube/config"
        raise Refusal(f"no cluster is named: {where}; name a file with --state FILE, or set KUBECONFIG")
    try:
        contexts, active = list_kube_config_contexts(there)  # type: ignore[no-untyped-call]
        load_kube_config(there, context, configuration)  # type: ignore[no-untyped-call]
    except _BROKEN as error:
        raise Refusal(f"the kubeconfig {there} cannot be used: {error}") from None
    chosen = active if context is None else next(each for each in contexts if each["name"] == context)
    return Api(configuration, chosen["context"].get("namespace") or "default")


def refusal_of(error: ApiError, what: str) -> Refusal:
    """The sentence for an answer that ends a command; ``what`` is not possible, as `runs cannot be read`."""
    if error.status == 401:
        return Refusal(f"{what}: the API server does not know who you are; log in again, as `kubectl auth whoami` says")
    if error.status == 403:
        return Refusal(f"{what}: {error.message}; ask the cluster's administrator for the role")
    if error.status == 404 and not error.reason:
        return Refusal(f"{what}: the cluster has no {GROUP}; install it: `jobtree crds | kubectl apply -f -`")
    return Refusal(f"{what}: {error.message or error} ({error.status} {error.reason})".replace(" )", ")"))
