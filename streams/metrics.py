"""What a worker counts and measures, in the text format that Prometheus reads.

Counters are of the process, since it began; gauges are taken when they are asked for. A throttle at
work, silence and a fault are told apart by them: what is emitted is recorded, known, cooled, sent,
parked or dead-lettered, and what waits to be read is the lag.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from aiokafka.errors import IllegalStateError
from faust.exceptions import ConsumerNotStarted
from prometheus_client import REGISTRY, CollectorRegistry, Counter, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from citeflow.finding_kinds import FINDING_KINDS
from citeflow.search import HEALTH

if TYPE_CHECKING:
    from streams.faust_app import App

__all__ = ["CONTENT_TYPE", "EVENTS", "exposition", "note_delivery", "note_finding"]

CONTENT_TYPE = CONTENT_TYPE_LATEST

EVENTS = Counter(
    "citeflow_events",
    "Tries of events by stage and outcome: handled, rejected, failed, given_up.",
    ["stage", "outcome"],
)
_FINDINGS = Counter(
    "citeflow_findings",
    "Findings by kind and outcome: emitted; then recorded, known, cooled, sent, parked, "
    "dead_lettered.",
    ["kind", "outcome"],
)
_DELIVERIES = Counter(
    "citeflow_alert_deliveries",
    "Messages to a channel by outcome: taken, failed, refused.",
    ["channel", "outcome"],
)


def note_finding(kind: str, outcome: str) -> None:
    """Count a finding. Anybody may name a kind: those that are not ours are counted as one."""
    _FINDINGS.labels(kind if kind in FINDING_KINDS else "other", outcome).inc()


def note_delivery(channel: str, outcome: str) -> None:
    """Count a message to a channel."""
    _DELIVERIES.labels(channel, outcome).inc()


def exposition(apps: Sequence[App]) -> bytes:
    """The process's counters, the gauges of these applications, and the process itself."""
    registry = CollectorRegistry()
    registry.register(_Gauges(apps))
    return bytes(generate_latest(REGISTRY) + generate_latest(registry))


class _Gauges(Collector):
    def __init__(self, apps: Sequence[App]) -> None:
        self._apps = apps

    def collect(self) -> Iterable[Metric]:
        lag = GaugeMetricFamily(
            "citeflow_consumer_lag",
            "Records on a partition behind which nothing is committed yet, as of the last fetch.",
            labels=["group", "topic", "partition"],
        )
        for app in self._apps:
            for topic, partition, records in _lags(app):
                lag.add_metric([app.conf.id, topic, str(partition)], records)
        yield lag
        for app in self._apps:
            for name, (text, measure) in app.gauges.items():
                yield GaugeMetricFamily(f"citeflow_{name}", text, value=measure())
        yield from _searches()


def _lags(app: App) -> Iterator[tuple[str, int, int]]:
    consumer: Any = app.consumer
    try:
        assignment = sorted(consumer.assignment())
    except ConsumerNotStarted:
        return  # whoever asks while the worker starts is told the rest
    for tp in assignment:
        if tp.topic in app.tables.changelog_topics:
            continue  # read at a recovery, never committed
        try:
            end = consumer.highwater(tp)
        except IllegalStateError:
            continue  # no longer assigned
        if end is not None:
            committed = consumer._committed_offset.get(tp) or 0
            yield tp.topic, tp.partition, max(0, end - committed)


def _searches() -> Iterator[Metric]:
    requests = CounterMetricFamily(
        "citeflow_search_requests",
        "Requests to a search engine by what came of them.",
        labels=["engine", "status"],
    )
    circuits = GaugeMetricFamily(
        "citeflow_search_circuit_open",
        "1 while an engine is left alone after it refused or failed.",
        labels=["engine"],
    )
    for engine in HEALTH.states():
        for status, count in engine.requests.items():
            requests.add_metric([engine.endpoint, status], count)
        circuits.add_metric([engine.endpoint], float(engine.opens_for > 0))
    yield requests
    yield circuits
