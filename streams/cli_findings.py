"""`python -m streams findings`: what there was to hear about."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable

import schemas
from citeflow.findings import Severity
from streams.cli_rejected import moment
from streams.config import StreamConfig
from streams.findings import FindingFilter, findings, summarise
from streams.voice import result, say

__all__ = ["add_findings"]

OK = 0


def add_findings(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = command(
        "findings",
        _run,
        "List findings, follow those to come, or count them by severity, kind and day.",
        "python -m streams findings summary --since 24h",
    )
    parser.add_argument("action", choices=("list", "tail", "summary"))
    parser.add_argument("--kind", action="append", default=[], help="only this kind; repeatable")
    parser.add_argument(
        "--severity",
        choices=[severity.value for severity in Severity],
        default=Severity.INFO.value,
        help="only those at least as severe",
    )
    parser.add_argument("--since", type=moment, help="only newer ones: 90m, 2h, 7d or an ISO time")
    parser.add_argument("--until", type=moment, help="only those before this time")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")


async def _run(arguments: argparse.Namespace, config: StreamConfig) -> int:
    chosen = FindingFilter(
        frozenset(arguments.kind),
        Severity(arguments.severity),
        arguments.since,
        arguments.until,
    )
    if arguments.action == "summary":
        summary = await summarise(config.broker, chosen)
        for severity, count in summary.severities.most_common():
            result(f"{count:8} {severity}")
        for kind, count in summary.kinds.most_common():
            result(f"{count:8} {_printable(kind)}")
        for day, count in sorted(summary.days.items()):
            result(f"{count:8} {day}")
        say(f"{summary.total} findings")
        return OK
    count = 0
    follow = arguments.action == "tail"
    async with contextlib.aclosing(findings(config.broker, chosen, follow=follow)) as found:
        async for finding in found:
            count += 1
            result(schemas.encode(finding).decode() if arguments.json else _line(finding))
    say(f"{count} findings")
    return OK


def _line(finding: schemas.AuditFinding) -> str:
    time = finding.timestamp.isoformat(timespec="seconds")
    text = f"{time} {finding.severity:8} {finding.kind} from {finding.source}: {finding.title}"
    return _printable(text)


def _printable(text: str) -> str:
    # It may come from a page: no control sequence of its reaches the terminal.
    return "".join(char if char.isprintable() else " " for char in text)
