"""Metrics of a real cycle, and the alert rules, dashboard and runbook that are made for them."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import msgspec
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from deploy.generate import ROWS, dashboard, kustomize
from exporters.lake.lake import Lake, read_manifest, read_snapshot
from exporters.monitoring.figures import METRICS, figures
from exporters.monitoring.metrics import Exposition
from jobtree.check import INVARIANTS
from tests.kube.bench import tools
from tests.kube.conftest import skip_or_fail
from tests.kube.helm import CHART, ROOT
from tests.support.commands import jobtree
from tests.support.times import unix
from tests.support.worlds import World

RULES = yaml.safe_load((CHART / "files" / "rules.yaml").read_text())
ALERTS = [rule for group in RULES["groups"] for rule in group["rules"]]
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")

FIRING: dict[str, tuple[list[tuple[str, str]], str]] = {
    "JobtreeNoCycle": ([("jobtree_last_cycle_timestamp_seconds", "0x20")], "7m"),
    "JobtreeNoMetrics": ([], "11m"),
    "JobtreeInvariantViolated": ([('jobtree_invariant_violations_total{invariant="one-node"}', "0 1x20")], "2m"),
    "JobtreePromiseLate": (
        [('jobtree_reservations_earliest_start_timestamp_seconds{reservation="a/b",flavor="H"}', "0x40")], "25m",
    ),
    "JobtreeCycleSlow": ([('jobtree_cycle_seconds{phase="plan"}', "45x20"),
                          ('jobtree_cycle_seconds{phase="write"}', "9x20")], "11m"),
    "JobtreePlansTruncated": ([("jobtree_plan_truncated_total", "0+4x60"), ("jobtree_cycles_total", "0+6x60")], "50m"),
    "JobtreePlanGapWide": ([('jobtree_plan_gap{stage="starts"}', "0.06x60")], "31m"),
    "JobtreeNodesClosed": ([('jobtree_fleet_gpus{flavor="H",state="closed"}', "20x60"),
                            ('jobtree_fleet_gpus{flavor="H",state="free"}', "80x60")], "16m"),
    "JobtreeFreeWhileWaiting": ([('jobtree_fleet_gpus{flavor="H",state="free"}', "80x90"),
                                 ('jobtree_fleet_gpus{flavor="H",state="leased"}', "20x90"),
                                 ('jobtree_runs_waiting{flavor="H",owner="o",reason="BudgetShort"}', "1x90")], "62m"),
    "JobtreeHoursRunOut": ([('jobtree_budgets_gpu_hours{budget="b",envelope="e",class="headroom"}', "4x30"),
                            ('jobtree_budgets_gpu_hours{budget="b",envelope="e",class="consumed"}', "96x30")], "16m"),
    "JobtreeObjectsLeftOut": ([("jobtree_plan_warnings", "2x90")], "62m"),
}  # fmt: skip
"""Of each alert: series by minute that set it off, and when it must have fired."""
CALM = {
    "jobtree_last_cycle_timestamp_seconds": "0+60x90",
    'jobtree_invariant_violations_total{invariant="one-node"}': "0x90",
    'jobtree_cycle_seconds{phase="plan"}': "20x90",
    "jobtree_plan_truncated_total": "0x90",
    "jobtree_cycles_total": "0+6x90",
    'jobtree_plan_gap{stage="starts"}': "0.001x90",
    'jobtree_fleet_gpus{flavor="H",state="closed"}': "5x90",
    'jobtree_fleet_gpus{flavor="H",state="free"}': "10x90",
    'jobtree_fleet_gpus{flavor="H",state="leased"}': "85x90",
    'jobtree_runs_waiting{flavor="H",owner="o",reason="CapacityShort"}': "3x90",
    'jobtree_budgets_gpu_hours{budget="b",envelope="e",class="headroom"}': "50x90",
    'jobtree_budgets_gpu_hours{budget="b",envelope="e",class="consumed"}': "50x90",
    "jobtree_plan_warnings": "0x90",
}
"""A fleet at work, on which nothing may fire."""


def promtool(*words: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """``promtool WORDS``."""
    skip_or_fail(name for name in ("promtool",) if name not in tools.find())
    command = [tools.find()["promtool"], *words]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, check=False, timeout=60)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Three nodes, of which one is cordoned; a run that starts, one that waits for money, and one for room."""
    world = World(tmp_path / "cluster.yaml").domain("d1", 2).node("shut", domain="d1", spec={"unschedulable": True})
    world.budget("org:a", 12).budget("org:b", 64)
    world.run("fits", 8, owner="org:a").run("poor", 8, owner="org:a").run("wide", 24, owner="org:b")
    return world


def samples(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for each in family.samples:
            found.setdefault(each.name, {})[tuple(sorted(each.labels.items()))] = each.value
    return found


def test_metrics_say_what_the_cycle_left(world: World) -> None:
    world.cycle()
    said = samples(jobtree("metrics", "--lake", world.lake).ok().out)

    assert said["jobtree_fleet_gpus"] == {
        (("flavor", "H100-80GB"), ("state", state)): number
        for state, number in (("leased", 8), ("spare", 0), ("foreign", 0), ("closed", 8), ("free", 8))
    }
    assert said["jobtree_domain_free_gpus"] == {(("domain", "d1"), ("flavor", "H100-80GB")): 8}
    waiting = {(dict(labels)["owner"], dict(labels)["reason"]): n for labels, n in said["jobtree_runs_waiting"].items()}
    assert waiting == {("org:a", "BudgetShort"): 1, ("org:b", "CapacityShort"): 1}
    paid = {(dict(labels)["owner"], dict(labels)["class"]): n
            for labels, n in said["jobtree_budgets_concurrency_gpus"].items() if n}  # fmt: skip
    assert paid == {("org:a", "owned"): 8}
    assert said["jobtree_cycles_total"] == {(): 1}
    assert sum(said["jobtree_invariant_violations_total"].values()) == 0
    assert {dict(labels)["invariant"] for labels in said["jobtree_invariant_violations_total"]} == set(INVARIANTS)
    count = said["jobtree_runs_admission_latency_seconds_count"]
    assert count == {(("flavor", "H100-80GB"), ("result", "admitted")): 1}


def test_leases_that_are_over_hold_nothing(tmp_path: Path) -> None:
    world = World(tmp_path / "cluster.yaml").domain("d1", 2).budget("org:a", 16)
    world.run("short", 8, limit="1h").run("long", 8)
    world.cycle()
    world.cycle("+1h")
    world.cycle("+2h")
    said = samples(jobtree("metrics", "--lake", world.lake).ok().out)
    assert {dict(labels)["state"]: n for labels, n in said["jobtree_fleet_gpus"].items()} == {
        "leased": 8, "spare": 0, "foreign": 0, "closed": 0, "free": 8,
    }  # fmt: skip


def test_a_held_promise_has_its_start_its_wait_and_what_it_lacks(tmp_path: Path) -> None:
    world = World(tmp_path / "cluster.yaml").domain("d1", 1).budget("org:a", 16)
    world.run("first", 8, limit="1h").run("then", 8)
    world.cycle()
    world.cycle("+1m")
    said = samples(jobtree("metrics", "--lake", world.lake).ok().out)

    (name,) = {dict(labels)["reservation"] for labels in said["jobtree_reservations_deficit_gpus"]}
    assert name.startswith("default/then")
    key = (("flavor", "H100-80GB"), ("reservation", name))
    assert said["jobtree_reservations_deficit_gpus"] == {key: 8}
    assert said["jobtree_reservations_earliest_start_timestamp_seconds"] == {key: unix("+1h")}
    assert said["jobtree_reservations_backlog_seconds"] == {key: 61}


def test_a_promise_that_is_kept_waits_no_more(tmp_path: Path) -> None:
    world = World(tmp_path / "cluster.yaml").domain("d1", 1).budget("org:a", 16)
    world.run("first", 8, limit="1h").run("then", 8)
    world.cycle()
    cycle = world.cycle("+1h")
    assert [each["status"]["state"] for each in cycle.all("Reservation")] == ["Activated"]
    said = samples(jobtree("metrics", "--lake", world.lake).ok().out)
    assert [name for name in said if name.startswith("jobtree_reservations")] == []


def test_caps_have_metrics_of_their_own(tmp_path: Path) -> None:
    world = World(tmp_path / "cluster.yaml").domain("d1", 2)
    caps = {
        "aggregateCaps": [{"name": "both", "envelopes": ["gpus"], "maxConcurrency": 12}],
        "useCaps": [{"name": "own", "maxConcurrency": 10, "maxGPUHours": 1000}],
    }
    world.budget("org:a", 16, spec=caps).run("r", 8).cycle()
    said = samples(jobtree("metrics", "--lake", world.lake).ok().out)

    def by_cap(name: str) -> dict[tuple[str, str, str], float]:
        found = {tuple(dict(labels).get(each, "") for each in ("cap", "flavor", "class")): n
                 for labels, n in said[f"jobtree_budgets_caps_{name}"].items()}  # fmt: skip
        return {(cap, flavor, of): n for (cap, flavor, of), n in found.items()}

    owned = {key[:2]: n for key, n in by_cap("concurrency_gpus").items() if key[2] == "owned"}
    assert owned == {("both", "any"): 8, ("own", "any"): 8}
    assert by_cap("headroom_gpus") == {("both", "any", ""): 2, ("own", "any", ""): 2}
    assert by_cap("gpu_hours")["own", "any", "headroom"] == 808


def test_a_wrong_record_is_counted_by_its_invariant(world: World) -> None:
    cycle = world.cycle()
    newest = Lake(str(world.lake)).newest()
    assert newest is not None
    snapshot, _ = read_snapshot(newest)
    lease = cycle.plan.leases[0]
    elsewhere = tuple(each.replace("#", "9#") for each in lease.spec.slice.nodes)
    slots = msgspec.structs.replace(lease.spec.slice, nodes=elsewhere)
    wrong = msgspec.structs.replace(lease, spec=msgspec.structs.replace(lease.spec, slice=slots))
    plan = msgspec.structs.replace(cycle.plan, leases=[wrong, *cycle.plan.leases[1:]])
    found = figures(read_manifest(newest), snapshot, plan)
    assert found.samples["jobtree_invariant_violations"]["slot-exists",] > 0


def test_counters_add_up_over_cycles_and_gauges_are_the_last(world: World) -> None:
    world.cycle()
    exposition = Exposition(Lake(str(world.lake)))
    assert exposition.look()
    world.cycle("2026-01-01T00:01:00Z")
    world.cycle("2026-01-01T00:02:00Z")
    assert exposition.look()
    assert not exposition.look()
    said = samples(exposition.text())
    assert said["jobtree_cycles_total"] == {(): 3}
    assert said["jobtree_last_cycle_timestamp_seconds"] == {(): 1767225720}


def test_a_lake_without_cycles_is_said(tmp_path: Path) -> None:
    said = jobtree("metrics", "--lake", tmp_path).refused()
    assert said == f"error: {tmp_path} holds no cycle; `jobtree --state FILE cycle` writes one"


def test_promtool_takes_the_metrics(world: World) -> None:
    world.cycle()
    done = promtool("check", "metrics", stdin=jobtree("metrics", "--lake", world.lake).ok().out)
    assert done.stderr.splitlines() == ['jobtree_budgets_gpu_hours use base unit "seconds" instead of "hours"']


def test_promtool_takes_the_rules() -> None:
    done = promtool("check", "rules", CHART / "files" / "rules.yaml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout


def _unit(name: str, series: dict[str, str], at: str, *, fires: bool) -> dict[str, Any]:
    inputs = [{"series": key, "values": values} for key, values in series.items()]
    query = f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) or vector(0)'
    expected = [{"labels": "{}", "value": int(fires)}]
    return {"interval": "1m", "input_series": inputs, "promql_expr_test": [
        {"expr": query, "eval_time": at, "exp_samples": expected}]}  # fmt: skip


def test_every_alert_fires_when_it_should_and_is_silent_else(tmp_path: Path) -> None:
    assert set(FIRING) == {each["alert"] for each in ALERTS}
    units = [_unit(name, dict(series), at, fires=True) for name, (series, at) in FIRING.items()]
    units += [_unit(name, CALM, "80m", fires=False) for name in FIRING]
    file = tmp_path / "test.yaml"
    rules = str(CHART / "files" / "rules.yaml")
    file.write_text(yaml.safe_dump({"rule_files": [rules], "evaluation_interval": "1m", "tests": units}))
    done = promtool("test", "rules", file)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("alert", ALERTS, ids=lambda each: each["alert"])
def test_every_alert_has_a_section_of_the_runbook(alert: dict[str, Any]) -> None:
    anchors = {line.removeprefix("## ").lower() for line in RUNBOOK.splitlines() if line.startswith("## ")}
    page, _, anchor = alert["annotations"]["runbook_url"].partition("#")
    assert page == "docs/runbook.md"
    assert anchor in anchors
    section = RUNBOOK.split(f"## {alert['alert']}\n", 1)[1].split("\n## ", 1)[0]
    assert [word for word in ("**Means**", "**Look**", "**Do**") if word not in section] == []


def _named(text: str) -> Iterator[str]:
    for name in re.findall(r"jobtree_[a-z_]+", text):
        yield re.sub(r"_(total|bucket|count|sum)$", "", name)


def test_rules_dashboard_and_runbook_ask_for_metrics_that_there_are() -> None:
    texts = [dashboard(), yaml.safe_dump(RULES), RUNBOOK]
    assert {name for text in texts for name in _named(text)} - set(METRICS) == set()


def test_the_page_has_every_metric_with_its_labels_and_help() -> None:
    rows = []
    for name, metric in METRICS.items():
        total = "_total" if metric.kind == "counter" else ""
        labels = ", ".join(f"`{each}`" for each in metric.labels)
        rows.append(f"| `{name}{total}` | {metric.kind} | {labels} | {metric.help} |")
    assert [row for row in rows if row not in PAGE.splitlines()] == []


def test_the_files_are_the_generated_ones() -> None:
    skip_or_fail(name for name in ("helm",) if name not in tools.find())
    assert (CHART / "files" / "dashboard.json").read_text() == dashboard()
    folder = ROOT / "deploy" / "kustomize"
    there = {each.relative_to(folder).as_posix(): each.read_text() for each in folder.rglob("*.yaml")}
    assert there == kustomize(), "run `make deploy`"


def test_every_question_has_panels() -> None:
    assert all(title.endswith("?") and row for title, row in ROWS.items())


@pytest.mark.slow
def test_a_service_answers_with_the_newest_cycle(world: World) -> None:
    world.cycle()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        str(Path(sys.executable).with_name("jobtree")),
        "metrics",
        "--lake",
        str(world.lake),
        "--port",
        str(port),
    ]
    with subprocess.Popen(command, env={**os.environ}) as child:
        try:
            text = _fetched(port, child)
        finally:
            child.terminate()
        assert child.wait(30) == 143
    assert samples(text)["jobtree_cycles_total"] == {(): 1}


def _fetched(port: int, child: "subprocess.Popen[bytes]") -> str:
    """The page, once it has a cycle in it."""
    while child.poll() is None:
        try:
            with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
                text = str(answer.read().decode())
        except OSError:
            continue
        if "\njobtree_cycles_total " in text:
            return text
    raise AssertionError("it ended")
