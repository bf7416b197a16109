"""What holds for every test: reproducible examples, slow tests first, and no skipped test in CI."""

import signal
from collections.abc import Generator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support import golden, scratch
from tests.support.effort import DEFAULT, IN_CI, share
from tests.support.order import slow_first

scratch.choose()

# Run in the background of a script, tests and all programs that they start would ignore Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Machines are shared, so a slow example says nothing about the code: no deadline, no complaint about slow generation.
settings.register_profile(
    "dev", max_examples=share(DEFAULT), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, print_blob=True)
settings.load_profile("ci" if IN_CI else "dev")


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """In CI a test that did not run proves nothing, so a skip is a failure; an expected failure did run."""
    if IN_CI and report.outcome == "skipped" and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid} was skipped ({reason}); in CI every test runs, so install what it needs."


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Slow tests come first, in random order as the others."""
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    items[:] = slow_first(items, lambda item: any(map(item.get_closest_marker, ("slow", "kube"))), workers)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """`make golden` writes its file; a worker of xdist tells the controller what it found."""
    if golden.REWRITES and hasattr(session.config, "workeroutput"):
        session.config.workeroutput["golden"] = golden.found
    elif golden.REWRITES:
        golden.rewrite(passed=exitstatus == pytest.ExitCode.OK)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """What a worker of xdist found."""
    golden.found.update(getattr(node, "workeroutput", {}).get("golden", {}))
