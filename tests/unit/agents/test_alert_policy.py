"""What becomes of a finding: policy, cooldown, and what resolves towards delivery."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import pytest

import schemas
from agents.alerts import AlertState, Policy, Verdict, judge, policy_of
from citeflow.finding_kinds import FINDING_KINDS
from citeflow.findings import Severity
from citeflow.settings import REGISTRY, SiteConfig

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def finding(severity: str = "warn", kind: str = "event_rejected") -> schemas.AuditFinding:
    return schemas.AuditFinding(
        event_id="e", timestamp=NOW, source="s", kind=kind, severity=severity,
        title="t", body="b", dedup_key="d",
    )  # fmt: skip


def policy(
    delivery: str = "discord", floor: Severity = Severity.WARN, cooldown: float = 60.0
) -> Policy:
    return Policy(delivery, floor, cooldown)


def state(*, minutes_ago: float, cooldown: float = 60.0) -> AlertState:
    started = NOW - timedelta(minutes=minutes_ago)
    return AlertState(kind="k", source="s").delivered(started, cooldown)


@pytest.mark.parametrize(
    ("severity", "given", "before", "verdict"),
    [
        ("info", policy(), None, Verdict.RECORD),
        ("warn", policy(), None, Verdict.SEND),
        ("warning", policy(), None, Verdict.SEND),
        ("loud", policy(), None, Verdict.SEND),
        ("warn", policy("log_only"), None, Verdict.RECORD),
        ("warn", policy(floor=Severity.ERROR), None, Verdict.RECORD),
        ("error", policy(floor=Severity.ERROR), None, Verdict.SEND),
        ("warn", policy(), state(minutes_ago=59), Verdict.COOL),
        ("warn", policy(), state(minutes_ago=61), Verdict.SEND),
        ("warn", policy(cooldown=0), state(minutes_ago=1), Verdict.SEND),
        ("critical", policy(), state(minutes_ago=1), Verdict.SEND),
        ("critical", policy("log_only", Severity.CRITICAL), None, Verdict.SEND),
    ],
)
def test_verdicts(
    severity: str, given: Policy, before: AlertState | None, verdict: Verdict
) -> None:
    """Info stays on its topic, critical is neither silenced nor cooled, the rest by policy."""
    assert judge(finding(severity), given, before, NOW) is verdict


def test_the_window_is_fixed() -> None:
    """Neither what is suppressed in it nor another delivery moves the end of a window."""
    open_window = state(minutes_ago=59)
    assert open_window.counted(7).delivered(NOW, 60).window_ends == open_window.window_ends
    assert judge(finding(), policy(), open_window, NOW + timedelta(minutes=2)) is Verdict.SEND


def test_what_is_delivered_again_by_kafka_is_counted_once() -> None:
    """The offset of the last one counted is remembered."""
    counted = state(minutes_ago=1).counted(7).counted(7).counted(3).counted(8)
    assert counted.suppressed == 2


def test_a_parked_finding_holds_back_those_that_would_be_cooled() -> None:
    """While one waits to be delivered, others of a kind with a cooldown are counted."""
    parked = AlertState(kind="k", source="s").with_parked(finding(), ("discord",), NOW)
    assert judge(finding(), policy(), parked, NOW) is Verdict.COOL
    assert judge(finding(), policy(cooldown=0), parked, NOW) is Verdict.SEND
    assert judge(finding("critical"), policy(), parked, NOW) is Verdict.SEND


def test_tries_of_what_is_parked_grow_apart_and_end_at_a_quarter_of_an_hour() -> None:
    """15 s, 30 s, 60 s ... 900 s; taken by all channels, nothing is left."""
    parked = AlertState(kind="k", source="s").with_parked(finding(), ("discord", "critical"), NOW)
    waits = []
    for _ in range(8):
        (entry,) = parked.parked
        waits.append((entry.retry_at - NOW).total_seconds())
        parked = parked.retried(entry, ("critical",), NOW)
    assert waits == [15, 30, 60, 120, 240, 480, 900, 900]
    assert parked.retried(parked.parked[0], (), NOW).over


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, FINDING_KINDS["event_rejected"].cooldown_minutes),
        ({"findings.event_rejected.cooldown_minutes": "60"}, 60.0),
        ({"findings.event_rejected.cooldown_minutes": "an hour"}, 0.0),
        ({"findings.event_rejected.cooldown_minutes": "nan"}, 0.0),
        ({"findings.event_rejected.cooldown_minutes": "-5"}, 0.0),
    ],
)
def test_cooldowns(
    settings: dict[str, object], expected: float, caplog: pytest.LogCaptureFixture
) -> None:
    """A cooldown that cannot be read is none, with a warning: towards delivery."""
    with caplog.at_level(logging.WARNING):
        read = policy_of("event_rejected", SiteConfig(settings, environ={}))
    assert read.cooldown_minutes == expected
    unreadable = str(*settings.values()) in ("an hour", "nan") if settings else False
    assert bool(caplog.records) is unreadable


def test_unreadable_words_resolve_towards_delivery() -> None:
    """A delivery or a severity that nobody knows silences nothing."""
    config = SiteConfig(
        {"findings.event_rejected.delivery": "pigeon", "findings.event_rejected.min_severity": "x"},
        environ={},
    )
    read = policy_of("event_rejected", config)
    assert (read.delivery, read.min_severity) == ("discord", Severity.WARN)


def test_an_unknown_kind_is_loud_and_can_be_configured() -> None:
    """No policy: delivered, without a cooldown; settings by its name count all the same."""
    assert policy_of("news_to_me", SiteConfig(environ={})) == policy(cooldown=0.0)
    environ = {"CITEFLOW_FINDINGS_NEWS_TO_ME_DELIVERY": "log_only"}
    assert policy_of("news_to_me", SiteConfig(environ=environ)).delivery == "log_only"


def test_all_filtered_is_told_once_a_day() -> None:
    """Warn, Discord, and a cooldown of a day."""
    config = SiteConfig(environ={})
    assert policy_of("research_web_sources_all_filtered", config) == policy(cooldown=1440.0)
    assert config.get_float("findings.research_web_sources_all_filtered.cooldown_minutes") == 1440
    assert "findings.agent_failed.min_severity" in REGISTRY
