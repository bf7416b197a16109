"""Five processes that are a Kubernetes: etcd, apiserver, controller manager, scheduler, and kwok for the kubelets.

They start together in a few seconds and use half a GB. They end with SIGKILL: an apiserver asked politely waits a
minute for its watchers. The kernel ends them too when the tests are killed.
"""

import ctypes
import json
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import yaml

USERS: Final = {
    "admin": ("admin", "system:masters"),
    "manager": ("system:kube-controller-manager", ""),
    "scheduler": ("system:kube-scheduler", ""),
    "kwok": ("kwok", "system:masters"),
    "alice": ("alice", ""),
    "bob": ("bob", ""),
}
"""Tokens, each with its user and group; alice and bob are people without any right."""

THIN: Final = ("kube-apiserver", "etcd")
"""The commands of a bench without controllers, scheduler and kubelets."""
_CONTROLLERS: Final = (
    "serviceaccount serviceaccount-token namespace garbage-collector pod-garbage-collector node-lifecycle "
    "taint-eviction job cronjob ttl-after-finished disruption endpointslice deployment replicaset "
    "clusterrole-aggregation"
)
_AUDITED: Final = "system:serviceaccounts:jobtree-system"
_PR_SET_PDEATHSIG: Final = 1
_LIBC: Final = ctypes.CDLL(None)


@dataclass
class Processes:
    """A running Kubernetes. ``folder`` holds its kubeconfigs, logs and data; ``thin``: etcd and apiserver alone."""

    commands: Mapping[str, Path]
    folder: Path
    ports: list[int]
    thin: bool = False
    running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return f"https://127.0.0.1:{self.ports[0]}"

    @property
    def etcd(self) -> str:
        """Where etcd listens, for those who compact its history."""
        return f"http://127.0.0.1:{self.ports[1]}"

    @property
    def ca(self) -> Path:
        """The certificate that signs the API server's, which is its own."""
        return self.folder / "certs" / "apiserver.crt"

    def kubeconfig(self, token: str, name: str, *, server: str = "", namespace: str = "default") -> Path:
        """Writes the kubeconfig ``name`` for a bearer token, and returns it; ``server``: another way to the API."""
        cluster = {"server": server or self.url}
        if cluster["server"].startswith("https"):
            cluster["certificate-authority"] = str(self.ca)
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "bench",
            "clusters": [{"name": "bench", "cluster": cluster}],
            "users": [{"name": "user", "user": {"token": token}}],
            "contexts": [{"name": "bench", "context": {"cluster": "bench", "user": "user", "namespace": namespace}}],
        }
        file = self.folder / f"{name}.kubeconfig"
        file.write_text(yaml.safe_dump(config))
        return file

    def start(self) -> None:
        """Starts everything and waits until it is ready. Raises RuntimeError with the log of what did not."""
        self._write_files()
        self.start_etcd()
        self.start_apiserver()
        self.until(self.is_ready, "kube-apiserver")
        if self.thin:
            return
        self._start_others()
        health = {
            "kube-controller-manager": f"https://127.0.0.1:{self.ports[3]}/healthz",
            "kube-scheduler": f"https://127.0.0.1:{self.ports[4]}/healthz",
            "kwok": f"http://127.0.0.1:{self.ports[5]}/healthz",
        }
        for name, url in health.items():
            self.until(partial(_answers, url), name)
        account = f"{self.url}/api/v1/namespaces/default/serviceaccounts/default"
        self.until(lambda: _answers(account, "admin"), "kube-controller-manager")  # pods are refused before

    def stop(self) -> None:
        """Kills everything, clients of the API first."""
        for name in ("kwok", "kube-scheduler", "kube-controller-manager", "kube-apiserver", "etcd"):
            self.kill(name)

    def kill(self, name: str) -> None:
        """Ends one process at once."""
        process = self.running.pop(name, None)
        if process is not None:
            process.kill()
            process.wait()

    def restart_apiserver(self) -> None:
        """A killed apiserver on the same data and port: ready within seconds, and the others live through it."""
        self.kill("kube-apiserver")
        self.start_apiserver()
        self.until(self.is_ready, "kube-apiserver")

    def audit(self) -> list[dict[str, Any]]:
        """Every call of an account of the namespace jobtree-system so far, as the apiserver's audit log has it."""
        log = self.folder / "audit.log"
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def until(self, ready: Callable[[], bool], name: str, within: float = 120) -> None:
        """Waits for ``ready``. Raises RuntimeError with the end of that process's log where it ended or is too late."""
        end = time.monotonic() + within
        while not ready():
            died = name in self.running and self.running[name].poll() is not None
            if died or time.monotonic() > end:
                log = (self.folder / f"{name}.log").read_text(errors="replace")[-2000:]
                raise RuntimeError(f"{name} {'ended' if died else f'was not ready within {within} s'}:\n{log}")
            time.sleep(0.02)

    def is_ready(self) -> bool:
        """Whether the API server serves."""
        return self.ca.exists() and _answers(f"{self.url}/readyz", "admin")

    def _write_files(self) -> None:
        for name in ("certs", "etcd"):
            (self.folder / name).mkdir(parents=True)
        key = ["openssl", "genrsa", "-out", str(self.folder / "sa.key"), "2048"]
        subprocess.run(key, check=True, capture_output=True)
        lines = [f'{token},{user},{token},"{group}"' for token, (user, group) in USERS.items()]
        (self.folder / "tokens.csv").write_text("\n".join(lines) + "\n")
        (self.folder / "pods.log").write_text("2026-01-01T00:00:00.000000000Z stdout F hello from the bench\n")
        rules = [{"level": "Metadata", "userGroups": [_AUDITED], "omitStages": ["RequestReceived"]}, {"level": "None"}]
        audit = {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": rules}
        (self.folder / "audit.yaml").write_text(yaml.safe_dump(audit))

    def start_etcd(self) -> None:
        """Starts etcd on the folder's data."""
        client, peer = self.etcd, f"http://127.0.0.1:{self.ports[2]}"
        self._run(
            "etcd", f"--data-dir={self.folder}/etcd", "--unsafe-no-fsync", "--log-level=error",
            f"--listen-client-urls={client}", f"--advertise-client-urls={client}", f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}", f"--initial-cluster=default={peer}",
            "--quota-backend-bytes=8589934592",
        )  # fmt: skip

    def start_apiserver(self) -> None:
        """Starts the API server; it is ready a few seconds later."""
        key = self.folder / "sa.key"
        # Nobody watches nodes in the thin bench: nothing would take away the taint, nor make accounts.
        thin = ["--disable-admission-plugins=TaintNodesByCondition,ServiceAccount"] if self.thin else []
        self._run(
            "kube-apiserver", f"--etcd-servers={self.etcd}", f"--cert-dir={self.folder}/certs",
            f"--secure-port={self.ports[0]}", "--bind-address=127.0.0.1", "--authorization-mode=RBAC",
            f"--token-auth-file={self.folder}/tokens.csv", f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}", "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://kubernetes.default.svc", "--endpoint-reconciler-type=none",
            "--kubelet-preferred-address-types=InternalIP", "--profiling=false", "--audit-log-mode=blocking",
            f"--audit-policy-file={self.folder}/audit.yaml", f"--audit-log-path={self.folder}/audit.log", *thin,
        )  # fmt: skip

    def _start_others(self) -> None:
        serving = [f"--cert-dir={self.folder}/certs", "--bind-address=127.0.0.1"]
        self._run(
            "kube-controller-manager", f"--kubeconfig={self.kubeconfig('manager', 'manager')}", "--leader-elect=false",
            "--use-service-account-credentials=true", f"--service-account-private-key-file={self.folder}/sa.key",
            f"--root-ca-file={self.ca}", "--kube-api-qps=1000", "--kube-api-burst=2000",
            f"--secure-port={self.ports[3]}", "--node-monitor-period=1s", "--node-monitor-grace-period=8s",
            "--node-startup-grace-period=20s", "--node-eviction-rate=100", "--secondary-node-eviction-rate=100",
            f"--controllers={','.join(f'{name}-controller' for name in _CONTROLLERS.split())}", *serving,
        )  # fmt: skip
        scheduler = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {
                "kubeconfig": str(self.kubeconfig("scheduler", "scheduler")),
                "qps": 1000,
                "burst": 2000,
            },
            "leaderElection": {"leaderElect": False},
            "podInitialBackoffSeconds": 1,
            "podMaxBackoffSeconds": 2,
        }
        (self.folder / "scheduler.yaml").write_text(yaml.safe_dump(scheduler))
        self._run(
            "kube-scheduler", f"--config={self.folder}/scheduler.yaml", f"--secure-port={self.ports[4]}", *serving
        )
        stages = (Path(__file__).parent / "stages.yaml").read_text()
        stages = stages.replace("FOLDER", str(self.folder)).replace("nodePort: PORT", f"nodePort: {self.ports[5]}")
        (self.folder / "stages.yaml").write_text(stages)
        self._run(
            "kwok", f"--kubeconfig={self.kubeconfig('kwok', 'kwok')}", f"--config={self.folder}/stages.yaml",
            f"--server-address=127.0.0.1:{self.ports[5]}", "--v=WARN",
        )  # fmt: skip

    def _run(self, name: str, *args: str) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.running[name] = subprocess.Popen(
                [str(self.commands[name]), *args], stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder,
                # It makes one system call and touches no lock.
                preexec_fn=_end_with_parent if sys.platform == "linux" else None,  # noqa: PLW1509
            )  # fmt: skip


def _end_with_parent() -> None:
    """In a child: the kernel kills it when the thread that made it ends, which is the tests' main thread."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _answers(url: str, token: str = "") -> bool:
    """Whether ``url`` says 200. The certificates are the processes' own, and nothing secret is sent."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    with suppress(urllib.error.URLError, ConnectionError, TimeoutError, ssl.SSLError):
        context = ssl._create_unverified_context() if url.startswith("https") else None
        with urllib.request.urlopen(request, timeout=2, context=context) as answer:
            return bool(answer.status == 200)
    return False


@contextmanager
def free_ports(count: int) -> Iterator[list[int]]:
    """Ports that nobody has, below those that clients get, and that no other bench here takes meanwhile.

    The lock of a block is its last port, held: a file would have to be found by all benches, whatever TMPDIR they see.
    """
    for first in range(21000, 32000, count + 1):
        with socket.socket() as lock:
            if _binds(lock, first + count) and all(map(_is_free, range(first, first + count))):
                yield list(range(first, first + count))
                return
    raise RuntimeError("no block of free ports between 21000 and 32000")


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as a server that takes it will
        return _binds(trial, port)


def _binds(trial: socket.socket, port: int) -> bool:
    try:
        trial.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True


@contextmanager
def running(commands: Mapping[str, Path], *, thin: bool = False) -> Iterator[Processes]:
    """A Kubernetes from its start to its end, in a folder of its own that goes with it."""
    with tempfile.TemporaryDirectory(prefix="jobtree-kube-") as folder, free_ports(6) as ports:
        processes = Processes(commands, Path(folder), ports, thin)
        try:
            processes.start()
            yield processes
        finally:
            processes.stop()
