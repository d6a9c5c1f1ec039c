"""audit.findings -> the log: what operators should see of a running system."""

from __future__ import annotations

import logging

from agents.base import Emit, Inbound
from citeflow.findings import Severity
from schemas import AuditFinding

__all__ = ["AlertAgent"]

logger = logging.getLogger(__name__)

_LEVELS = {
    Severity.WARN.value: logging.WARNING,
    Severity.ERROR.value: logging.ERROR,
    Severity.CRITICAL.value: logging.CRITICAL,
}


class AlertAgent:
    """Writes every finding to the log; `info` is recorded on the topic and logged as such.

    A severity it does not know is as loud as a warning.
    """

    stage = "alert"

    def request_id(self, event: Inbound[AuditFinding]) -> str:
        """The request that the finding is about, or the finding itself."""
        return event.record.request_id or event.record.event_id

    async def handle(self, event: Inbound[AuditFinding], emit: Emit) -> None:
        """Log the finding."""
        finding = event.record
        level = (
            logging.INFO
            if finding.severity == Severity.INFO.value
            else _LEVELS.get(finding.severity, logging.WARNING)
        )
        logger.log(
            level,
            "%s from %s (request %s): %s: %s",
            finding.kind, finding.source, finding.request_id, finding.title, finding.body,
        )  # fmt: skip

    async def give_up(self, event: Inbound[AuditFinding], error: Exception, emit: Emit) -> None:
        """Say so: the finding itself stays on its topic."""
        logger.error("finding %s could not be logged: %s", event.record.event_id, error)
