"""A finding in Discord's words: an embed within its limits, from which nothing can ping or link.

Titles and bodies come from pages and from whoever can put an event on a topic. They are shown as
they are written, and do nothing: Markdown and mentions are escaped, addresses cannot be clicked,
control and direction characters are dropped, and Discord is told to parse no mention.
"""

from __future__ import annotations

import unicodedata
from datetime import datetime
from typing import Any

from agents.alerts.policy import severity_of
from agents.alerts.state import AlertState
from citeflow.findings import Severity
from schemas import AuditFinding

__all__ = ["finding_message", "plain", "summary_message"]

# https://discord.com/developers/docs/resources/message#embed-object-embed-limits, in UTF-16 units:
# title 256, description 4096, a field's value 1024, 25 fields, 6000 in all. The body stays under
# the 2000 that a message without an embed may have.
TITLE, BODY, FIELD = 256, 1900, 1024
MORE = "…"

_COLOURS = {
    Severity.INFO: 0x5B8DEF,
    Severity.WARN: 0xF0B232,
    Severity.ERROR: 0xE0533D,
    Severity.CRITICAL: 0x8E0000,
}
_MARKDOWN = frozenset("\\`*_~|>#[]()<-+")
_ZERO_WIDTH = "\u200b"


def finding_message(finding: AuditFinding, *, count: int = 1) -> dict[str, Any]:
    """The body of the request that posts `finding`; `count` is how many it stands for."""
    severity = severity_of(finding.severity)
    return _message(
        severity,
        title=plain(f"{severity.value.upper()}: {finding.title}", TITLE),
        body=plain(finding.body, BODY),
        source=finding.source,
        kind=finding.kind,
        request=finding.request_id or "",
        count=count,
        time=finding.timestamp,
        event_id=finding.event_id,
    )


def summary_message(state: AlertState, now: datetime) -> dict[str, Any]:
    """What is posted at the end of a window in which findings were suppressed."""
    minutes = 0.0
    if state.window_started is not None:
        minutes = (now - state.window_started).total_seconds() / 60
    span = f"{minutes / 60:.3g} h" if minutes >= 120 else f"{minutes:.0f} min"
    return _message(
        Severity.WARN,
        title=plain(f"{state.suppressed} more of {state.kind}", TITLE),
        body=plain(
            f"{state.suppressed} more of this kind from {state.source} in the last {span}.",
            BODY,
        ),
        source=state.source,
        kind=state.kind,
        request="",
        count=state.suppressed,
        time=now,
        event_id="",
    )


def _message(
    severity: Severity,
    *,
    title: str,
    body: str,
    source: str,
    kind: str,
    request: str,
    count: int,
    time: datetime,
    event_id: str,
) -> dict[str, Any]:
    fields = [("source", source), ("kind", kind), ("request", request), ("count", str(count))]
    embed: dict[str, Any] = {
        "title": title or "(no title)",
        "description": body,
        "color": _COLOURS[severity],
        "fields": [
            {"name": name, "value": shown, "inline": True}
            for name, value in fields
            if (shown := plain(value, FIELD // 4))
        ],
        "timestamp": time.isoformat(),
    }
    if event_id:
        # Whoever gets it twice after a crash can tell.
        embed["footer"] = {"text": _clean(event_id)[: FIELD // 4]}
    return {"embeds": [embed], "allowed_mentions": {"parse": []}}


def plain(text: str, limit: int) -> str:
    """`text` as it is to be read, in at most `limit` UTF-16 units, cut between characters."""
    shown: list[str] = []
    size = 0
    for character in _clean(text).replace("://", f":{_ZERO_WIDTH}//"):
        piece = _escape(character)
        size += _units(piece)
        if size > limit - len(MORE):
            # What is cut off a character (an accent, a joiner) goes with it.
            while shown and _belongs_to_the_one_before(character):
                character = shown.pop()[-1]
            return "".join(shown).rstrip() + MORE
        shown.append(piece)
    return "".join(shown)


def _clean(text: str) -> str:
    lines = (
        "".join(c for c in line if unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Co", "Cn"))
        for line in text.replace("\t", " ").splitlines()
    )
    return "\n".join(line.rstrip() for line in lines if line.strip())


def _escape(character: str) -> str:
    if character == "@":
        return "@" + _ZERO_WIDTH
    return "\\" + character if character in _MARKDOWN else character


def _belongs_to_the_one_before(character: str) -> bool:
    return unicodedata.category(character).startswith("M")


def _units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
