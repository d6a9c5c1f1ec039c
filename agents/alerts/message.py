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
from schemas import AuditFinding, event_id

__all__ = ["finding_message", "plain", "summary_finding"]

# https://discord.com/developers/docs/resources/message#embed-object-embed-limits: title 256,
# description 4096, a field's value 1024, 6000 in all. The API counts code points, its own client
# UTF-16 units; the larger of the two is counted here. The body stays under the 2000 that a message
# without an embed may have.
TITLE, BODY, FIELD = 256, 1900, 256
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
    fields = (
        ("source", finding.source),
        ("kind", finding.kind),
        ("request", finding.request_id or ""),
        ("count", str(count)),
    )
    embed = {
        "title": plain(f"{severity.value.upper()}: {finding.title}", TITLE),
        "description": plain(finding.body, BODY),
        "color": _COLOURS[severity],
        "fields": [
            {"name": name, "value": shown, "inline": True}
            for name, value in fields
            if (shown := plain(value, FIELD))
        ],
        "timestamp": finding.timestamp.isoformat(),
        # Whoever gets it twice after a crash can tell.
        "footer": {"text": _clean(finding.event_id)[:FIELD] or "-"},
    }
    return {"embeds": [embed], "allowed_mentions": {"parse": []}}


def summary_finding(state: AlertState, now: datetime) -> AuditFinding:
    """What is told at the end of a window in which findings were suppressed."""
    started = state.window_started or now
    minutes = (now - started).total_seconds() / 60
    span = f"{minutes / 60:.3g} h" if minutes >= 120 else f"{minutes:.0f} min"
    about = f" about {state.subject.partition('|')[2]}" if state.subject else ""
    number = state.suppressed
    place = f"{state.kind}|{state.source}|{state.subject}|{started.isoformat()}"
    return AuditFinding(
        event_id=event_id(place, "summary"),
        timestamp=now,
        source=state.source,
        kind=state.kind,
        severity=Severity.WARN.value,
        title=f"{number} more of {state.kind}",
        body=f"{number} more of this kind from {state.source}{about} in the last {span}.",
        dedup_key="summary",
    )


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
