"""A plain HTTP proxy before the API server that counts writes and lets one of them fail in every way it can."""

import http.client
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

Way = Literal["before", "after"]


@dataclass(frozen=True)
class Fault:
    """What happens to a call, ``before`` the server hears of it or ``after`` it acted.

    ``status``: the answer instead of the server's; 0: the connection is reset; -1: nothing is answered for ever, so
    that the client's time-out strikes (after ``seconds``).
    """

    way: Way = "before"
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b'{"kind":"Status","reason":"Bench","message":"the bench says so"}'


@dataclass
class Call:
    """One call that came through. ``number`` counts writes from 1; 0 for reads and for the planners' lock."""

    number: int
    method: str
    path: str
    status: int = 0


@dataclass
class Proxy:
    """``fault``: asked for each counted write, by number; ``crashed``: everything is refused from now on."""

    url: str
    fault: Callable[[Call], Fault | None] = lambda _: None
    calls: list[Call] = field(default_factory=list)
    crashed: bool = False
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def writes(self) -> list[Call]:
        """The counted writes, in the order in which they came."""
        return [each for each in self.calls if each.number]

    def reset(self, fault: Callable[[Call], Fault | None] = lambda _: None) -> None:
        """Counts anew, with another fault."""
        self.fault, self.calls, self.crashed, self._count = fault, [], False, 0

    def enter(self, method: str, path: str) -> Call:
        """Notes a call."""
        with self._lock:
            counted = method != "GET" and "coordination.k8s.io" not in path
            self._count += counted
            call = Call(self._count if counted else 0, method, path)
            self.calls.append(call)
            return call


@contextmanager
def proxy(upstream: str, ca: Path) -> Iterator[Proxy]:
    """A proxy before ``upstream``, listening on a port of its own."""
    context = ssl.create_default_context(cafile=str(ca))
    host = urlsplit(upstream).netloc
    local = threading.local()
    connections: list[http.client.HTTPSConnection] = []
    accepted: set[socket.socket] = set()
    made: list[Proxy] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            accepted.add(self.request)
            super().setup()

        def _pass(self) -> None:
            mine = made[0]
            call = mine.enter(self.command, self.path)
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            fault = mine.fault(call) if call.number else None
            if mine.crashed:
                self._reset()
                return
            if fault is not None and fault.way == "before":
                self._fail(fault)
                return
            status, headers, answer = self._forward(body)
            call.status = status
            if fault is not None:
                self._fail(fault)
                return
            self._answer(status, headers, answer)

        def _forward(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
            headers = {k: v for k, v in self.headers.items() if k.lower() not in {"host", "accept-encoding"}}
            for fresh in (False, True):
                if fresh or not hasattr(local, "connection"):
                    local.connection = http.client.HTTPSConnection(host, context=context, timeout=60)
                    connections.append(local.connection)
                try:
                    local.connection.request(self.command, self.path, body or None, headers)
                    got = local.connection.getresponse()
                    return got.status, got.getheaders(), got.read()
                except (http.client.HTTPException, ConnectionError):
                    if fresh:
                        raise
            raise AssertionError("unreachable")

        def _fail(self, fault: Fault) -> None:
            if fault.status == 0:
                self._reset()
            elif fault.status < 0:
                self.connection.settimeout(120)
                self.connection.recv(1)  # until the client goes away
                self.close_connection = True
            else:
                self._answer(fault.status, [*fault.headers, ("Content-Type", "application/json")], fault.body)

        def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in {"transfer-encoding", "content-length", "connection"}:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _reset(self) -> None:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
            self.close_connection = True

        def log_message(self, *args: Any) -> None:
            """Says nothing."""

        def finish(self) -> None:
            accepted.discard(self.request)
            if not self.wfile.closed and self.connection.fileno() >= 0:
                super().finish()
            self.rfile.close()

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _pass  # noqa: N815

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False  # each is waited for at the end
    made.append(Proxy(f"http://127.0.0.1:{server.server_address[1]}"))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield made[0]
    finally:
        server.shutdown()
        for client in list(accepted):
            with suppress(OSError):  # it has just gone
                client.shutdown(socket.SHUT_RDWR)
        server.server_close()
        for each in connections:
            each.close()
