"""Findings: what an operator should hear about, and the sink they are handed to.

The library emits findings with `emit_finding` and never cares where they go. A program installs
a sink for the whole process (`set_finding_sink`), or collects what one piece of work emitted
(`collect_findings`); without either they are logged.
"""

from __future__ import annotations

import contextlib
import contextvars
import enum
import logging
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Finding",
    "FindingSink",
    "Severity",
    "collect_findings",
    "emit_finding",
    "set_finding_sink",
]

logger = logging.getLogger(__name__)


class Severity(enum.StrEnum):
    """How much a finding matters. `INFO` is recorded and never delivered."""

    INFO = "info"
    WARN = "warn"
    ERROR = "error"
    CRITICAL = "critical"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing worth an operator's attention.

    `kind` is a stable machine name, `dedup_key` (default: the kind) tells repeats of one subject
    apart from other subjects of the same kind. `extra` holds JSON-representable facts.
    """

    source: str
    kind: str
    severity: Severity
    title: str
    body: str
    dedup_key: str
    extra: Mapping[str, Any] = field(default_factory=dict)


FindingSink = Callable[[Finding], None]

_LOG_LEVELS = {
    Severity.INFO: logging.INFO,
    Severity.WARN: logging.WARNING,
    Severity.ERROR: logging.ERROR,
    Severity.CRITICAL: logging.CRITICAL,
}


def _log_finding(finding: Finding) -> None:
    level = _LOG_LEVELS[finding.severity]
    logger.log(level, "finding %s from %s: %s", finding.kind, finding.source, finding.title)


_process_sink: FindingSink = _log_finding
_collector: contextvars.ContextVar[list[Finding] | None] = contextvars.ContextVar(
    "citeflow_finding_collector", default=None
)


def set_finding_sink(sink: FindingSink | None) -> FindingSink:
    """Make `sink` receive every finding of this process; None restores logging.

    Returns the sink that was replaced. A sink that raises is logged and does not disturb the
    code that emitted the finding.
    """
    global _process_sink
    previous, _process_sink = _process_sink, sink or _log_finding
    return previous


@contextlib.contextmanager
def collect_findings() -> Iterator[list[Finding]]:
    """Collect the findings emitted inside the block, including by tasks started in it.

    Collected findings do not reach the process sink: whoever collects them passes them on.
    """
    found: list[Finding] = []
    token = _collector.set(found)
    try:
        yield found
    finally:
        _collector.reset(token)


def _severity(value: str) -> Severity:
    name = value.strip().lower()
    if name == "warning":
        return Severity.WARN
    try:
        return Severity(name)
    except ValueError:
        # An unknown severity must be loud rather than lost.
        logger.warning("unknown finding severity %r, treated as warn", value)
        return Severity.WARN


def _json_safe(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _json_safe(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_json_safe(item) for item in value]
    return str(value)


def emit_finding(
    *,
    source: str,
    kind: str,
    title: str,
    body: str,
    severity: str = "info",
    dedup_key: str | None = None,
    extra: Mapping[str, Any] | None = None,
) -> Finding:
    """Hand a finding to the collector of the running work, or to the process sink.

    `severity` is one of `info`, `warn` (also `warning`), `error`, `critical`; anything else is
    treated as `warn`. Values of `extra` that JSON cannot hold become strings, NaN and infinity
    become null. Never raises.
    """
    finding = Finding(
        source=source,
        kind=kind,
        severity=_severity(severity),
        title=title,
        body=body,
        dedup_key=dedup_key or kind,
        extra=_json_safe(extra or {}),
    )
    collected = _collector.get()
    if collected is not None:
        collected.append(finding)
        return finding
    try:
        _process_sink(finding)
    except Exception:
        logger.exception("the finding sink failed on %s", kind)
    return finding
