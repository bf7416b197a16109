"""`make deploy`: writes what of deploy/ follows from something else, the Grafana dashboard and the Kustomize files.

The dashboard is the table `ROWS` below. The Kustomize base is the chart's default rendering, which needs helm
(`make tools`); a test holds all of it equal to what is checked in.
"""

import json
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.kube.helm import CHART, rendered

DEPLOY: Final = Path(__file__).parent
DASHBOARD: Final = CHART / "files" / "dashboard.json"
KUSTOMIZE: Final = DEPLOY / "kustomize"


class Panel(NamedTuple):
    """A question and the queries that answer it, each with its legend. ``kind``: Grafana's; ``unit``: Grafana's."""

    title: str
    kind: str
    unit: str
    queries: tuple[tuple[str, str], ...]


_OWNER: Final = 'owner=~"$owner"'
_FLAVOR: Final = 'flavor=~"$flavor"'
_LATENCY: Final = (
    f'sum by (le) (rate(jobtree_runs_admission_latency_seconds_bucket{{result="admitted", {_FLAVOR}}}[1h]))'
)
ROWS: Final = {
    "Is planning well?": (
        Panel("Seconds since the last cycle", "stat", "s", (("time() - jobtree_last_cycle_timestamp_seconds", ""),)),
        Panel("Invariant violations", "stat", "short", (("sum(jobtree_invariant_violations_total)", ""),)),
        Panel("Cycle, by phase", "timeseries", "s", (("jobtree_cycle_seconds", "{{phase}}"),)),
        Panel("Gap to the bound, by stage", "timeseries", "percentunit", (("jobtree_plan_gap", "{{stage}}"),)),
        Panel(
            "Plans cut off by the deadline", "timeseries", "percentunit",
            (("increase(jobtree_plan_truncated_total[10m]) / increase(jobtree_cycles_total[10m])", "cut off"),),
        ),
        Panel("Warnings in the last plan", "stat", "short", (("jobtree_plan_warnings", ""),)),
    ),
    "Is the fleet full?": (
        Panel(
            "GPUs by what has them", "timeseries", "short",
            ((f"sum by (state) (jobtree_fleet_gpus{{{_FLAVOR}}})", "{{state}}"),),
        ),
        Panel("Free GPUs by domain", "bargauge", "short", ((f"jobtree_domain_free_gpus{{{_FLAVOR}}}", "{{domain}}"),)),
        Panel("Spares", "timeseries", "short", ((f"jobtree_spares_concurrency_gpus{{{_FLAVOR}}}", "{{flavor}}"),)),
        Panel(
            "Width of malleable runs", "timeseries", "short",
            ((f"sum by (owner) (jobtree_elastic_width_gpus{{{_OWNER}}})", "{{owner}}"),),
        ),
    ),
    "Who waits, and why?": (
        Panel(
            "Runs that wait, by reason", "timeseries", "short",
            ((f"sum by (reason) (jobtree_runs_waiting{{{_OWNER}, {_FLAVOR}}})", "{{reason}}"),),
        ),
        Panel(
            "Runs that wait, by owner", "bargauge", "short",
            ((f"sum by (owner) (jobtree_runs_waiting{{{_OWNER}, {_FLAVOR}}})", "{{owner}}"),),
        ),
        Panel(
            "GPUs that they lack", "timeseries", "short",
            ((f"sum by (owner) (jobtree_runs_deficit_gpus{{{_OWNER}, {_FLAVOR}}})", "{{owner}}"),),
        ),
        Panel(
            "Wait until the start, median and nine in ten", "timeseries", "s",
            tuple((f"histogram_quantile({share}, {_LATENCY})", f"p{share:.0%}"[:-1]) for share in (0.5, 0.9)),
        ),
    ),
    "What is promised, and at whose cost?": (
        Panel(
            "Earliest starts", "table", "s",
            ((f"jobtree_reservations_earliest_start_timestamp_seconds{{{_FLAVOR}}} - time()", "{{reservation}}"),),
        ),
        Panel("How long they have waited", "table", "s", ((f"jobtree_reservations_backlog_seconds{{{_FLAVOR}}}", ""),)),
        Panel("GPUs to be freed", "table", "short", ((f"jobtree_reservations_deficit_gpus{{{_FLAVOR}}}", ""),)),
        Panel(
            "Runs in conflict sets", "timeseries", "short",
            ((f"sum by (owner) (jobtree_runs_conflicts{{{_OWNER}, {_FLAVOR}}})", "{{owner}}"),),
        ),
        Panel(
            "Cuts and swaps an hour", "timeseries", "short",
            (("sum by (kind) (increase(jobtree_resolver_actions_total[1h]))", "{{kind}}"),),
        ),
    ),
    "Who pays?": (
        Panel(
            "GPUs paid for, by class", "timeseries", "short",
            ((f"sum by (class) (jobtree_budgets_concurrency_gpus{{{_OWNER}, {_FLAVOR}}})", "{{class}}"),),
        ),
        Panel(
            "Headroom", "bargauge", "short",
            ((f"jobtree_budgets_headroom_gpus{{{_OWNER}, {_FLAVOR}}}", "{{budget}}/{{envelope}}"),),
        ),
        Panel(
            "GPU-hours left", "bargauge", "h",
            ((f'jobtree_budgets_gpu_hours{{class="headroom", {_OWNER}, {_FLAVOR}}}', "{{budget}}/{{envelope}}"),),
        ),
    ),
}  # fmt: skip


def dashboard() -> str:
    """The dashboard as Grafana imports it."""
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in ROWS.items():
        panels.append({"type": "row", "title": title, "gridPos": {"x": 0, "y": top, "w": 24, "h": 1}, "panels": []})
        top += 1
        for place, panel in enumerate(row):
            where = {"x": 8 * (place % 3), "y": top + 8 * (place // 3), "w": 8, "h": 8}
            panels.append(_panel(panel, where))
        top += 8 * ((len(row) + 2) // 3)
    for number, each in enumerate(panels, start=1):
        each["id"] = number
    choices = [
        {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"},
        _choice("owner", "label_values(jobtree_budgets_headroom_gpus, owner)"),
        _choice("flavor", "label_values(jobtree_fleet_gpus, flavor)"),
    ]
    whole = {
        "title": "Jobtree", "uid": "jobtree", "schemaVersion": 39, "tags": ["jobtree"], "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"}, "templating": {"list": choices}, "panels": panels,
    }  # fmt: skip
    return json.dumps(whole, indent=1) + "\n"


def _panel(panel: Panel, where: dict[str, int]) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${datasource}"}
    now = panel.kind != "timeseries"
    targets = [
        {"refId": chr(65 + place), "datasource": source, "expr": expr, "legendFormat": legend, "instant": now}
        | ({"format": "table"} if panel.kind == "table" else {})
        for place, (expr, legend) in enumerate(panel.queries)
    ]
    return {
        "type": panel.kind, "title": panel.title, "gridPos": where, "datasource": source, "targets": targets,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []}, "options": {},
    }  # fmt: skip


def _choice(name: str, query: str) -> dict[str, Any]:
    source = {"type": "prometheus", "uid": "${datasource}"}
    return {
        "name": name, "type": "query", "datasource": source, "query": query, "refresh": 2, "multi": True,
        "includeAll": True, "allValue": ".*", "current": {"text": "All", "value": "$__all"},
    }  # fmt: skip


def kustomize() -> dict[str, str]:
    """The files below deploy/kustomize by path: the chart's rendering, and an overlay for the Prometheus Operator.

    What belongs to Helm alone is left out of it; the CRDs are deploy/crds.
    """
    plain = _documents(rendered())
    extras = ("metrics.serviceMonitor.enabled=true", "metrics.rules.enabled=true", "metrics.dashboard.enabled=true")
    more = _documents(rendered(*extras))
    known = {_key(each) for each in plain}
    policy = [each for each in plain if each["kind"] == "Policy"]
    rest = [each for each in plain if each not in policy]
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "jobtree-system"}}
    return {
        "base/jobtree.yaml": _text([namespace, *rest]),
        "base/policy.yaml": _text(policy),
        "base/kustomization.yaml": _kustomization("jobtree.yaml", "policy.yaml"),
        "overlays/monitoring/monitoring.yaml": _text([each for each in more if _key(each) not in known]),
        "overlays/monitoring/kustomization.yaml": _kustomization("../../base", "monitoring.yaml"),
    }


def _documents(text: str) -> list[dict[str, Any]]:
    found = [each for each in yaml.safe_load_all(text) if each]
    for each in found:
        meta = each["metadata"]
        for part in ("annotations", "labels"):
            kept = {key: value for key, value in meta.pop(part, {}).items() if "helm" not in f"{key}{value}".lower()}
            if kept:
                meta[part] = kept
    return found


def _key(document: dict[str, Any]) -> tuple[str, str]:
    return document["kind"], document["metadata"]["name"]


def _text(documents: list[dict[str, Any]]) -> str:
    return yaml.safe_dump_all(documents, sort_keys=False, width=120)


def _kustomization(*resources: str) -> str:
    head = {"apiVersion": "kustomize.config.k8s.io/v1beta1", "kind": "Kustomization"}
    return yaml.safe_dump({**head, "resources": list(resources)}, sort_keys=False)


def main() -> None:
    """Writes everything."""
    DASHBOARD.write_text(dashboard(), encoding="utf-8")
    for name, text in kustomize().items():
        file = KUSTOMIZE / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
