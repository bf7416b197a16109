"""Metrics in Prometheus' text format: the lake's records, one after another, as `monitoring.figures` reads them."""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from exporters.lake import forward, storage
from exporters.lake.lake import Lake, manifests_in, read_manifest, read_plan, read_snapshot
from exporters.lake.manifest import DONE
from exporters.monitoring.figures import METRICS, Figures, Labels, Samples, added, figures
from exporters.plans import planjson
from jobtree.api import Refusal
from jobtree.world.collector import collector_paused

LATENCIES: Final = (10, 30, 60, 300, 900, 3600, 4 * 3600, 12 * 3600, 86400, 3 * 86400, 7 * 86400)
"""Upper bounds of a latency's buckets, seconds."""
PAUSE: Final = 5.0
"""Seconds between two looks at the lake."""


class _Histogram:
    """How many observations there were up to each of `LATENCIES`, and their sum."""

    def __init__(self) -> None:
        self._counts = [0] * (len(LATENCIES) + 1)
        self.total = 0.0

    def see(self, observed: Sequence[float]) -> None:
        """Counts observations."""
        for each in observed:
            self._counts[bisect_left(LATENCIES, each)] += 1
            self.total += each

    def buckets(self) -> list[tuple[str, float]]:
        """Each bound with how many observations were up to it."""
        bounds = [*(str(float(bound)) for bound in LATENCIES), "+Inf"]
        return list(zip(bounds, map(float, accumulate(self._counts)), strict=True))


class Exposition(Collector):
    """What a lake's cycles say: gauges of the last one, counters of all that were seen since it was made.

    The first look sees only the newest cycle: Prometheus knows how to go on where a counter begins anew.
    """

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self._last: Path | None = None
        self._gauges: dict[str, Samples] = {}
        self._counters: dict[str, Samples] = {}
        self._observed: dict[str, dict[Labels, _Histogram]] = defaultdict(dict)
        self._lock = threading.Lock()

    def look(self) -> bool:
        """Sees the cycles that were carried out since the last look; whether there were any. Raises Refusal."""
        fresh = list(self._fresh())
        for place, path in enumerate(fresh):
            with collector_paused():
                found = _read(path, checked=place == len(fresh) - 1)
            with self._lock:
                self._see(found)
            self._last = path
        return bool(fresh)

    def text(self) -> str:
        """Everything in Prometheus' text format."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry).decode()

    def collect(self) -> Iterator[Metric]:
        """Everything, as the Prometheus client asks for it."""
        with self._lock:
            yield from [self._family(name) for name in METRICS]

    def _family(self, name: str) -> Metric:
        metric = METRICS[name]
        if metric.kind == "histogram":
            made = HistogramMetricFamily(name, metric.help, labels=metric.labels)
            for labels, observed in sorted(self._observed[name].items()):
                made.add_metric(labels, observed.buckets(), observed.total)
            return made
        family = GaugeMetricFamily if metric.kind == "gauge" else CounterMetricFamily
        samples = (self._gauges if metric.kind == "gauge" else self._counters).get(name, {})
        simple = family(name, metric.help, labels=metric.labels)
        for labels, number in sorted(samples.items()):
            simple.add_metric(labels, number)
        return simple

    def _fresh(self) -> Iterator[Path]:
        """Manifests of carried out cycles after the last one that was seen, by time; at first only the newest."""
        days = sorted(storage.glob(self._lake.root, "cycles/date=*"), key=lambda path: path.name)
        if self._last is None:
            done = (path for day in reversed(days) for path in reversed(manifests_in(day)) if _is_done(path))
            if (newest := next(done, None)) is not None:
                yield newest
            return
        since = self._last
        for day in days:
            if day.name >= since.parent.name:
                later = manifests_in(day)
                later = later[later.index(since) + 1 :] if since in later else later
                yield from (path for path in later if _is_done(path))

    def _see(self, found: Figures) -> None:
        for name, samples in found.samples.items():
            if METRICS[name].kind == "gauge":
                self._gauges[name] = samples
            else:
                self._counters[name] = added((self._counters.get(name, {}), samples))
        for name, observed in found.observed.items():
            for labels, seconds in observed.items():
                self._observed[name].setdefault(labels, _Histogram()).see(seconds)


def serve(exposition: Exposition, port: int, complain: Callable[[str], None]) -> None:
    """Answers on ``port`` for ever, with a look at the lake every `PAUSE`; what goes wrong there is said once.

    Raises Refusal where the port cannot be had.
    """
    registry = CollectorRegistry()
    registry.register(exposition)
    try:
        start_http_server(port, registry=registry)
    except OSError as error:
        raise Refusal(f"port {port} cannot be listened on: {error.strerror}; say another --port") from None
    said = ""
    while True:
        try:
            exposition.look()
            said = ""
        except Refusal as refusal:
            if str(refusal) != said:
                complain(str(refusal))
            said = str(refusal)
        time.sleep(PAUSE)


def _is_done(path: Path) -> bool:
    return read_manifest(path).phase in DONE


def _read(path: Path, *, checked: bool) -> Figures:
    """The figures of a record. Raises Refusal where a file of it is missing or was changed."""
    manifest = read_manifest(path)
    snapshot, _ = read_snapshot(path)
    plan = planjson.decode(read_plan(path, manifest))
    if manifest.left_out or manifest.phase == "observed":
        checked = False  # what was carried out is less than what was checked
    return figures(manifest, snapshot, forward.carried_out(plan, manifest.left_out), checked=checked)
