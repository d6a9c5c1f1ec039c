"""Every kind of finding: what it means, what to do about it, and how it is delivered by default."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["DELIVERIES", "FINDING_KINDS", "FindingKind", "policy_setting"]

DELIVERIES = ("discord", "log_only", "route")
"""`discord` posts there, `route` to every channel that is set up, `log_only` writes to the log."""

HOUR, DAY = 60.0, 1440.0


@dataclass(frozen=True, slots=True)
class FindingKind:
    """A kind, the severity it is emitted with, and its default policy.

    `cooldown_minutes` is the window after a delivery in which no other finding of the kind and
    source is delivered; 0: none.
    """

    kind: str
    severity: str
    meaning: str
    action: str
    delivery: str = "discord"
    min_severity: str = "warn"
    cooldown_minutes: float = HOUR


FINDING_KINDS: Mapping[str, FindingKind] = {
    kind.kind: kind
    for kind in (
        FindingKind(
            "research_web_sources_all_filtered",
            "warn",
            "A topic's pages were read, and none was good enough to be cited.",
            "Look at the dropped sources of the request; loosen the quality settings or accept it.",
            cooldown_minutes=DAY,
        ),
        FindingKind(
            "research_web_sources_all_unfetchable",
            "info",
            "A topic had results, and no page of them could be read.",
            "Look at the reasons in web_research_extract_failed.",
            cooldown_minutes=DAY,
        ),
        FindingKind(
            "web_research_extract_failed",
            "info",
            "Pages of one host could not be read; one finding per host and search.",
            "Nothing, unless one host of yours is always among them.",
            cooldown_minutes=DAY,
        ),
        FindingKind(
            "web_search_blocked",
            "warn",
            "A search backend refuses our requests, or limits their rate.",
            "Configure another backend (SearXNG, Brave), or search less often from this address.",
        ),
        FindingKind(
            "web_search_failed",
            "info",
            "A search had no answer from any backend; the request says so, it is not empty.",
            "See web_search_blocked, and the network.",
        ),
        FindingKind(
            "internal_link_search_failed",
            "info",
            "The posts database could not be asked; the context has no internal links.",
            "Check CITEFLOW_DATABASE_URL and the posts table.",
        ),
        FindingKind(
            "context_deadline_passed",
            "warn",
            "A context was emitted before all its pages had arrived.",
            "Add workers, or raise research_join_timeout_seconds.",
        ),
        FindingKind(
            "event_rejected",
            "warn",
            "An event could not be read and stands on events.rejected.",
            "`python -m streams rejected show`, correct the producer, then redrive.",
            cooldown_minutes=15.0,
        ),
        FindingKind(
            "agent_failed",
            "error",
            "An agent could not handle an event after three tries; its stand-in answer was sent.",
            "Read the worker's log; report it if the event is a good one.",
            cooldown_minutes=15.0,
        ),
        FindingKind(
            "settings_database_down",
            "warn",
            "The settings cannot be read from PostgreSQL; the last known values are in force.",
            "Check CITEFLOW_DATABASE_URL and the database.",
        ),
        FindingKind(
            "worker_ended",
            "critical",
            "A worker ended on a fault; its events go to the others, or to the next one. It is "
            "posted without Kafka, every 15 min at most, and put on the topic by the next worker.",
            "Read the reason; check the broker.",
            cooldown_minutes=15.0,
        ),
        FindingKind(
            "daily_digest",
            "warn",
            "What a day held: volume, the most frequent kinds, what is parked or degraded.",
            "Read it.",
            cooldown_minutes=0.0,
        ),
    )
}
"""The kinds that citeflow itself emits. Any other is delivered, without a cooldown."""


def policy_setting(kind: str, name: str) -> str:
    """The key of one of a kind's settings: `delivery`, `min_severity` or `cooldown_minutes`."""
    return f"findings.{kind}.{name}"
