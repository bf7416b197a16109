"""The API server's client where no server is needed: kubeconfigs that are spoilt, and answers that take their time."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest
import urllib3
from kubernetes.client import Configuration

from jobtree.api import Refusal
from jobtree.cluster.live import client


@pytest.mark.parametrize("data", [b"a: [b\n", b"hello", b"\xff\xfe", b"contexts: 3\n", b"[]", b"current-context: x\n"])
def test_a_spoilt_kubeconfig_is_refused_by_its_name(
    data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config"
    file.write_bytes(data)
    monkeypatch.setenv("KUBECONFIG", str(file))
    with pytest.raises(Refusal, match=f"^the kubeconfig {file} cannot be used: "):
        client.connect()


class Slow(BaseHTTPRequestHandler):
    """A log with a long silence in it."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"one\n")
        self.wfile.flush()
        Event().wait(0.3)
        self.wfile.write(b"two\n")

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Says nothing."""


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[client.Api]:
    """A server whose silence is longer than the time-out of an answer."""
    monkeypatch.setattr(client, "READING", urllib3.Timeout(connect=5, read=0.05))
    with ThreadingHTTPServer(("127.0.0.1", 0), Slow) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        configuration = Configuration()
        configuration.host = f"http://127.0.0.1:{server.server_port}"
        api = client.Api(configuration)
        yield api
        api.close()
        server.shutdown()


def test_a_log_that_is_followed_may_be_silent(slow: client.Api) -> None:
    assert list(slow.stream("/log", follow=True)) == [b"one", b"two"]


def test_any_other_answer_is_waited_for_so_long_and_no_longer(slow: client.Api) -> None:
    with pytest.raises(Refusal, match="does not answer"):
        list(slow.stream("/log", follow=False))
