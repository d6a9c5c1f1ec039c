"""What becomes of a finding: policy, cooldown, and what resolves towards delivery."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

import schemas
from agents.alerts import AlertState, Policy, Verdict, judge, policy_of, trimmed, window_of
from agents.alerts.state import decode_state, encode_state
from citeflow.finding_kinds import FINDING_KINDS
from citeflow.findings import Severity
from citeflow.settings import REGISTRY, SiteConfig
from streams import alert

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
    return AlertState(kind="k", source="s").opened(started, cooldown).delivered("other", started)


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
    assert judge(finding(severity), given, given.cooldown_minutes, before, NOW) is verdict


def test_the_window_is_fixed() -> None:
    """Neither what is suppressed in it nor another delivery moves the end of a window."""
    open_window = state(minutes_ago=59)
    assert open_window.counted(7).opened(NOW, 60).window_ends == open_window.window_ends
    assert judge(finding(), policy(), 60, open_window, NOW + timedelta(minutes=2)) is Verdict.SEND


def test_what_is_delivered_again_by_kafka_is_counted_once() -> None:
    """The offset of the last one counted is remembered."""
    counted = state(minutes_ago=1).counted(7).counted(7).counted(3).counted(8)
    assert counted.suppressed == 2


def test_a_parked_finding_holds_back_those_that_would_be_cooled() -> None:
    """While one waits to be delivered, others of a kind with a cooldown are counted."""
    waiting = msgspec.structs.replace(finding(), event_id="waiting")
    parked = AlertState(kind="k", source="s").with_parked(waiting, ("discord",), NOW)
    assert judge(finding(), policy(), 60, parked, NOW) is Verdict.COOL
    assert judge(finding(), policy(cooldown=0), 0, parked, NOW) is Verdict.SEND
    assert judge(finding("critical"), policy(), 60, parked, NOW) is Verdict.SEND


@pytest.mark.parametrize("severity", ["warn", "critical"])
def test_what_was_delivered_or_waits_is_known(severity: str) -> None:
    """The same event, read again after a crash or emitted twice: neither posted nor counted."""
    empty = AlertState(kind="k", source="s")
    for known in (
        empty.delivered("e", NOW),
        empty.with_parked(finding(), ("discord",), NOW),
        decode_state(encode_state(empty.delivered("e", NOW))),
    ):
        assert judge(finding(severity), policy(), 60, known, NOW) is Verdict.KNOWN
    forgotten = empty.delivered("e", NOW).forgotten()
    assert forgotten.over
    assert judge(finding(severity), policy(), 60, forgotten, NOW) is Verdict.SEND


def test_without_a_cooldown_the_same_words_share_a_window() -> None:
    """By severity and dedup_key, unless critical; with a cooldown all share one."""
    config = SiteConfig(environ={})
    loud = policy(cooldown=0)
    assert window_of(finding(), loud, config) == ("warn|d", 30.0)
    assert window_of(finding("error"), loud, config) == ("error|d", 30.0)
    assert window_of(finding("critical"), loud, config) == ("", 0.0)
    assert window_of(finding(), policy(), config) == ("", 60.0)
    never = SiteConfig({"alert_repeat_minutes": 0}, environ={})
    assert window_of(finding(), loud, never) == ("", 0.0)


def test_two_workers_at_once_lose_nothing_that_is_parked() -> None:
    """What either parked is parked, unless one delivered it; the window is the younger one's."""
    both, one, other = (
        msgspec.structs.replace(finding(), event_id=name) for name in ("both", "one", "other")
    )
    start = AlertState(kind="k", source="s").with_parked(both, ("discord",), NOW)
    mine = start.with_parked(one, ("discord",), NOW)
    theirs = start.delivered("both", NOW).opened(NOW, 60).with_parked(other, ("discord",), NOW)
    for merged in (mine.merged(theirs), theirs.merged(mine)):
        assert {p.finding.event_id for p in merged.parked} == {"one", "other"}
        assert merged.window_ends == theirs.window_ends


def test_a_log_read_from_its_beginning_leads_to_its_last_state() -> None:
    """Merging each state with the one before it changes nothing where one worker wrote them."""
    states = [AlertState(kind="k", source="s").with_parked(finding(), ("a", "b"), NOW)]
    states.append(states[-1].put_off(states[-1].parked[0], ("b",), NOW))
    states.append(states[-1].opened(NOW, 60))
    states.append(states[-1].counted(5))
    states.append(states[-1].delivered("e", NOW))
    states.append(states[-1].closed())
    folded = states[0]
    for logged in states:
        folded = folded.merged(logged)
        assert folded == logged


def test_no_finding_outgrows_a_state() -> None:
    """A full state of the largest findings stays under half a record; names stay distinct."""
    huge = schemas.AuditFinding(
        event_id="\x01" * 9000, timestamp=NOW, source="\x01" * 9000, kind="k" * 900_000,
        severity="w" * 9000, title="\x01" * 9000, body="\x01" * 900_000, dedup_key="d" * 9000,
        request_id="r" * 9000, extra={"x": "y" * 100_000},
    )  # fmt: skip
    full = AlertState(kind="k", source="s")
    for number in range(alert.MAX_PARKED):
        one = trimmed(msgspec.structs.replace(huge, event_id=f"{number}" + huge.event_id))
        full = full.with_parked(one, ("discord", "critical", "apprise"), NOW)
    assert len(full.parked) == alert.MAX_PARKED
    assert len(encode_state(full)) < 800_000
    other = msgspec.structs.replace(huge, kind=huge.kind + "2")
    assert trimmed(huge).kind != trimmed(other).kind
    assert trimmed(finding()) == finding()


def test_tries_of_what_is_parked_grow_apart_and_end_at_a_quarter_of_an_hour() -> None:
    """15 s, 30 s, 60 s ... 900 s; taken by all channels, nothing is left."""
    parked = AlertState(kind="k", source="s").with_parked(finding(), ("discord", "critical"), NOW)
    waits = []
    for _ in range(8):
        (entry,) = parked.parked
        waits.append((entry.retry_at - NOW).total_seconds())
        parked = parked.put_off(entry, ("critical",), NOW)
    assert waits == [15, 30, 60, 120, 240, 480, 900, 900]
    assert parked.parked[0].channels == ("critical",)
    assert parked.delivered("e", NOW).forgotten().over


def test_what_waits_for_the_same_channel_is_put_off_with_it() -> None:
    """One failure tells of all that are due; what waits for another channel keeps its time."""
    names = ("first", "second", "elsewhere")
    first, second, elsewhere = (msgspec.structs.replace(finding(), event_id=n) for n in names)
    parked = AlertState(kind="k", source="s")
    for entry, channel in ((first, "discord"), (second, "discord"), (elsewhere, "apprise")):
        parked = parked.with_parked(entry, (channel,), NOW)
    later = NOW + timedelta(seconds=15)
    put_off = parked.put_off(parked.parked[0], ("discord",), later)
    times = {p.finding.event_id: p.retry_at for p in put_off.parked}
    assert times["first"] == times["second"] == later + timedelta(seconds=30)
    assert times["elsewhere"] == later


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


def test_what_was_given_up_does_not_come_back_from_the_log() -> None:
    """Recovery merges each state of the log with the next one, from the first on."""
    parked = AlertState(kind="k", source="s").with_parked(finding(), ("discord",), NOW).counted(3)
    (entry,) = parked.parked
    given = parked.given_up(entry, NOW)
    assert (given.parked, given.suppressed, given.window_ends) == ((), 1, NOW)
    later = given.closed().delivered("other", NOW)
    for recovered in (parked.merged(given), parked.merged(given).merged(later)):
        assert recovered.parked == ()
    again = later.with_parked(finding(), ("discord",), NOW)
    assert len(later.merged(again).parked) == 1
