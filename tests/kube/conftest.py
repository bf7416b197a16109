"""A real Kubernetes for these tests: one per test process, empty again after each test.

``kube`` is the whole (etcd, apiserver, controller manager, scheduler, kwok's kubelets), ``thin_kube`` only etcd and an
apiserver, for what needs many objects and no pods. The commands are built once by ``make kube``
(`tests.kube.bench.build`); where they are missing, the tests are skipped, and in CI fail.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.kube.bench import build, processes

if TYPE_CHECKING:
    from tests.kube.bench.kube import Kube

FEW: Final = 8
"""Descriptors that a test may leave open: the planner's process is kept, and connections of the bench's admin."""


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Where ``-m`` leaves these tests out nothing here is imported, which is a third of what collecting takes."""
    return True if "not kube" in config.getoption("markexpr") else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here carries `kube`: whichever asks for the bench first waits for all of Kubernetes to start."""
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.kube)


def skip_or_fail(missing: Iterable[str]) -> None:
    """Skips the test where a command is missing; in CI that is a failure."""
    if names := ", ".join(missing):
        say = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        say(f"no {names}: `make kube` builds what the tests need of Kubernetes once, in 5 to 10 minutes")


@contextmanager
def _bench(*, thin: bool) -> Iterator[Kube]:
    from tests.kube.bench.kube import Kube  # the client's models take a second to import

    found = build.find()
    needed = processes.THIN if thin else build.COMMANDS
    skip_or_fail(name for name in needed if name not in found)
    with processes.running(found, thin=thin) as running:
        kube = Kube(running)
        try:
            yield kube
        finally:
            kube.close()


def descriptors() -> dict[int, str]:
    """What this process has open, and what each is."""
    found = {}
    for each in Path("/proc/self/fd").iterdir():
        try:
            found[int(each.name)] = str(each.readlink())
        except FileNotFoundError:  # the descriptor of this very look
            continue
    return found


@pytest.fixture(autouse=True)
def closes_what_it_opens() -> Iterator[None]:
    """A process may have 1,024 descriptors open, and these tests are many: each closes its clients and proxies."""
    before = descriptors()
    yield
    if len(descriptors()) > len(before) + FEW:
        gc.collect()  # clients that nobody has any more, as those of commands
    left = {number: what for number, what in descriptors().items() if before.get(number) != what}
    assert len(left) <= FEW, left


@pytest.fixture(scope="session")
def kube_session() -> Iterator[Kube]:
    """The bench of this test process, started when the first test asks for it. Tests ask for `kube`."""
    with _bench(thin=False) as kube:
        yield kube


@pytest.fixture(scope="session")
def thin_kube_session() -> Iterator[Kube]:
    """The bench without controllers, scheduler and kubelets. Tests ask for `thin_kube`."""
    with _bench(thin=True) as kube:
        yield kube


@pytest.fixture
def kube(kube_session: Kube) -> Iterator[Kube]:
    """A running Kubernetes with our CRDs and no objects of ours, no nodes and no pods; swept after the test.

    ``kube.admin`` is a client that may do everything, ``kube.client(token)`` one of anybody else: `alice` and `bob` are
    users without rights, ``kube.account(namespace, name)`` makes a ServiceAccount and returns its token, and
    ``kube.kubeconfig(token)`` is a file for commands. ``kube.create(*documents)``, ``kube.load(yaml)`` and
    ``kube.nodes(n)`` make objects, ``kube.ours(kind)``, ``kube.objects``, ``kube.get`` read them,
    ``kube.until(condition)`` waits.
    Pods end as their annotations ``bench/succeed-after``, ``bench/fail-after``, ``bench/exit-after`` say, nodes turn
    NotReady with ``bench/not-ready`` (see bench/stages.yaml). ``kube.processes.audit()`` are the calls that accounts of
    the namespace jobtree-system have made.
    """
    yield from _emptied(kube_session)


@pytest.fixture
def thin_kube(thin_kube_session: Kube) -> Iterator[Kube]:
    """As `kube`, without controllers, scheduler and kubelets: nodes stay as they were written, pods are never bound."""
    yield from _emptied(thin_kube_session)


def _emptied(kube: Kube) -> Iterator[Kube]:
    if not kube.is_empty:  # the test before could not
        kube.reset()
    yield kube
    kube.reset()
