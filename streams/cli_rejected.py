"""`python -m streams rejected`: look at dead letters and send them again."""

from __future__ import annotations

import argparse
import contextlib
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import schemas
from streams.config import StreamConfig
from streams.rejected import RejectedFilter, dead_letters, redrive
from streams.voice import result, say

__all__ = ["add_rejected", "moment"]

OK, FAILED = 0, 1

_AGO = re.compile(r"(\d+)([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def moment(text: str) -> datetime:
    """A time given as `90m`, `2h`, `7d` ago, or as an ISO 8601 time (UTC unless it says).

    Raises `argparse.ArgumentTypeError`.
    """
    if ago := _AGO.fullmatch(text):
        return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
    try:
        time = datetime.fromisoformat(text)
    except ValueError as exc:
        raise argparse.ArgumentTypeError(f"not a time: {text!r} (try 2h, or an ISO time)") from exc
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def add_rejected(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = command(
        "rejected",
        _run,
        "List, show or send again what was rejected.",
        "python -m streams rejected redrive --stage search --since 2h --dry-run",
    )
    parser.add_argument("action", choices=("list", "show", "redrive"))
    parser.add_argument("event_id", nargs="*", help="only these dead letters")
    parser.add_argument("--stage", help="only those of this stage (search, fetch, score, alert)")
    parser.add_argument("--since", type=moment, help="only newer ones: 90m, 2h, 7d or an ISO time")
    parser.add_argument("--dry-run", action="store_true", help="redrive: say it, do not do it")


async def _run(arguments: argparse.Namespace, config: StreamConfig) -> int:
    selected = RejectedFilter(frozenset(arguments.event_id), arguments.stage, arguments.since)
    if arguments.action == "redrive":
        return await _redrive(config.broker, selected, dry_run=arguments.dry_run)
    line = _summary if arguments.action == "list" else _whole
    count = 0
    async with contextlib.aclosing(dead_letters(config.broker, selected)) as letters:
        async for letter in letters:
            count += 1
            result(line(letter))
    say(f"{count} dead letters")
    return OK if count or not arguments.event_id else FAILED


async def _redrive(broker: str, selected: RejectedFilter, *, dry_run: bool) -> int:
    outcomes = await redrive(broker, selected, dry_run=dry_run)
    for outcome in outcomes:
        said = outcome.refusal or ("would be sent again" if dry_run else "sent again")
        result(f"{_summary(outcome.letter)}: {said}")
    refused = sum(outcome.refusal is not None for outcome in outcomes)
    say(
        f"{len(outcomes) - refused} of {len(outcomes)} {'can be' if dry_run else 'were'} sent again"
    )
    return FAILED if refused else OK


def _summary(letter: schemas.EventRejected) -> str:
    place = f"{letter.topic}-{letter.partition}-{letter.offset}"
    time = letter.timestamp.isoformat(timespec="seconds")
    return f"{letter.event_id} {time} {letter.stage} {place} {letter.value_size} B: {letter.error}"


def _whole(letter: schemas.EventRejected) -> str:
    fields: list[tuple[str, Any]] = [
        ("event id", letter.event_id),
        ("stage", letter.stage),
        ("error", letter.error),
        ("place", f"{letter.topic}-{letter.partition}-{letter.offset}"),
        ("time", letter.timestamp.isoformat()),
        ("key", letter.record_key),
        ("headers", dict(letter.headers)),
        ("size", f"{letter.value_size} bytes, {len(letter.value)} kept"),
        # As bytes: what was rejected may hold terminal control sequences.
        ("value", letter.value),
    ]
    return "\n".join(f"{name:9} {value}" for name, value in fields)
