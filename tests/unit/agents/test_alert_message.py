"""What a finding says on Discord, and what it cannot do there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

import schemas
from agents.alerts import AlertState, finding_message, summary_finding
from agents.alerts.message import plain

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


def message(title: str = "t", body: str = "b", **changes: str) -> dict[str, object]:
    finding = schemas.AuditFinding(
        event_id="0b5ad9e4-0000-5000-8000-000000000000", timestamp=NOW, source="score_agent",
        kind="kind", severity=changes.get("severity", "warn"), title=title, body=body,
        dedup_key="d", request_id=changes.get("request_id", "r-1"),
    )  # fmt: skip
    return finding_message(finding)


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def test_a_hostile_title_and_body_arrive_harmless() -> None:
    """Mentions, masked links and Markdown are text; nothing is parsed; the body is cut."""
    hostile = "@everyone <@123> <@&9> [click](https://evil.example) **bold** `x` ||spoiler|| "
    sent = message(title=hostile, body=(hostile + "\u202eabc\x00\x1b[31m") * 100)
    assert sent["allowed_mentions"] == {"parse": []}
    (embed,) = sent["embeds"]  # type: ignore[misc]
    for text in (embed["title"], embed["description"]):
        assert "@everyone" not in text
        assert "<@" not in text.replace("\\<", "")
        assert "](" not in text
        assert "https://" not in text
        assert "**" not in text.replace("\\*", "")
        assert not set(text) & set("\u202e\x00\x1b")
    assert units(embed["title"]) <= 256
    assert units(embed["description"]) <= 1900
    assert "everyone" in embed["title"]


def test_the_fields_and_the_colour() -> None:
    """Source, kind, request, count and time, and a colour for the severity."""
    (embed,) = message(severity="critical")["embeds"]  # type: ignore[misc]
    assert {f["name"]: f["value"] for f in embed["fields"]} == {
        "source": "score\\_agent",
        "kind": "kind",
        "request": "r\\-1",
        "count": "1",
    }
    assert embed["timestamp"] == "2026-03-01T12:00:00+00:00"
    assert embed["color"] != message()["embeds"][0]["color"]  # type: ignore[index]
    assert embed["title"].startswith("CRITICAL")


def test_a_summary_says_how_many_and_in_what_time() -> None:
    """Twelve more in the last hour."""
    state = AlertState(kind="event_rejected", source="search_agent").opened(NOW, 60)
    for offset in range(12):
        state = state.counted(offset)
    summary = summary_finding(state, NOW + timedelta(minutes=60))
    assert summary.event_id == summary_finding(state, NOW + timedelta(minutes=61)).event_id
    (embed,) = finding_message(summary, count=12)["embeds"]
    assert embed["title"] == "WARN: 12 more of event\\_rejected"
    assert {"name": "count", "value": "12", "inline": True} in embed["fields"]
    assert "12 more of this kind" in embed["description"]
    assert "60 min" in embed["description"]


@given(st.text(max_size=600), st.integers(8, 300))
def test_any_text_is_cut_within_its_limit(text: str, limit: int) -> None:
    """In UTF-16 units, never inside an escape or between a letter and its accent."""
    shown = plain(text, limit)
    assert units(shown) <= limit
    shown.encode()
    body = shown.removesuffix("…")
    assert (len(body) - len(body.rstrip("\\"))) % 2 == 0
    assert "@everyone" not in shown


def test_an_accent_goes_with_its_letter() -> None:
    """Cut before the letter, not between letter and accent."""
    assert plain("abcdefge\u0301xyz", 9) == "abcdefg…"
