"""Whether a finding is delivered, now or not at all: a function of finding, settings and state."""

from __future__ import annotations

import enum
import logging
import math
from dataclasses import dataclass
from datetime import datetime

from agents.alerts.state import AlertState
from citeflow.errors import SettingsError
from citeflow.finding_kinds import DELIVERIES, FINDING_KINDS, FindingKind, policy_setting
from citeflow.findings import Severity
from citeflow.settings import SiteConfig
from schemas import AuditFinding

__all__ = ["TOLD_DIRECTLY", "Policy", "Verdict", "judge", "policy_of", "severity_of", "window_of"]

logger = logging.getLogger(__name__)

TOLD_DIRECTLY = "told_directly"
"""In a finding's `extra`: it was posted before it came to its topic, by a worker that ended."""

_ORDER = tuple(Severity)
_WORDS = {"warning": Severity.WARN, "fatal": Severity.CRITICAL}


class Verdict(enum.StrEnum):
    """What becomes of a finding."""

    KNOWN = "known"
    """It was delivered before, or waits to be: the same event, read or emitted again."""
    RECORD = "record"
    """It stays on its topic, and in the log."""
    COOL = "cool"
    """One like it was delivered a short while ago: it is counted."""
    SEND = "send"


@dataclass(frozen=True, slots=True)
class Policy:
    """How findings of one kind are delivered; `cooldown_minutes` of 0 is no cooldown."""

    delivery: str
    min_severity: Severity
    cooldown_minutes: float


def severity_of(word: str) -> Severity:
    """The severity that a finding names; one that nobody knows is as loud as a warning."""
    name = word.strip().lower()
    try:
        return _WORDS.get(name) or Severity(name)
    except ValueError:
        logger.warning("unknown severity %r, treated as warn", word[:40])
        return Severity.WARN


def policy_of(kind: str, site_config: SiteConfig) -> Policy:
    """The policy in force. What cannot be read resolves towards delivery, with a warning."""
    known = FINDING_KINDS.get(kind) or FindingKind(kind, "warn", "", "", cooldown_minutes=0.0)
    delivery = _word(site_config, kind, "delivery", known.delivery)
    if delivery not in DELIVERIES:
        _warn(kind, "delivery", delivery, "discord")
        delivery = "discord"
    floor = _word(site_config, kind, "min_severity", known.min_severity)
    try:
        min_severity = _WORDS.get(floor) or Severity(floor)
    except ValueError:
        _warn(kind, "min_severity", floor, "warn")
        min_severity = Severity.WARN
    return Policy(delivery, min_severity, _cooldown(site_config, kind, known.cooldown_minutes))


def _word(site_config: SiteConfig, kind: str, name: str, default: str) -> str:
    found = site_config.raw(policy_setting(kind, name))
    return found[0].strip().lower() if found is not None else default


def _cooldown(site_config: SiteConfig, kind: str, default: float) -> float:
    found = site_config.raw(policy_setting(kind, "cooldown_minutes"))
    if found is None:
        return default
    try:
        minutes = float(found[0])
        if not math.isfinite(minutes):
            raise SettingsError("not a finite number")
    except (ValueError, SettingsError):
        _warn(kind, "cooldown_minutes", found[0], "no cooldown")
        return 0.0
    return max(minutes, 0.0)


def _warn(kind: str, name: str, value: str, instead: str) -> None:
    logger.warning("%s is %r: %s", policy_setting(kind, name), value[:40], instead)


def window_of(finding: AuditFinding, policy: Policy, site_config: SiteConfig) -> tuple[str, float]:
    """Which findings of its kind and source share a window with this one, and its minutes.

    All of them where the kind has a cooldown: the subject is blank. Without one, those that say the
    same with the same severity, so that a fault that repeats itself is not a flood.
    """
    severity = severity_of(finding.severity)
    if policy.cooldown_minutes or severity is Severity.CRITICAL:
        return "", policy.cooldown_minutes
    minutes = site_config.get_float("alert_repeat_minutes")
    return (f"{severity.value}|{finding.dedup_key}", minutes) if minutes else ("", 0.0)


def judge(
    finding: AuditFinding,
    policy: Policy,
    window_minutes: float,
    state: AlertState | None,
    now: datetime,
) -> Verdict:
    """What becomes of `finding`, with `state` that of those it shares its window with."""
    severity = severity_of(finding.severity)
    if severity is Severity.INFO:
        return Verdict.RECORD
    told = finding.extra.get(TOLD_DIRECTLY) is True
    if told or (state is not None and state.knows(finding.event_id)):
        return Verdict.KNOWN
    if severity is Severity.CRITICAL:
        return Verdict.SEND  # neither silenced nor cooled, whatever the policy says
    below = _ORDER.index(severity) < _ORDER.index(policy.min_severity)
    if below or policy.delivery == "log_only":
        return Verdict.RECORD
    if window_minutes and state is not None and state.quiet(now):
        return Verdict.COOL
    return Verdict.SEND
