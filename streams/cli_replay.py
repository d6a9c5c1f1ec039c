"""`python -m streams replay`: past requests again, or their judging under other settings."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import time
import uuid
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from aiokafka import AIOKafkaProducer

import schemas
from streams.cli_rejected import moment
from streams.config import StreamConfig
from streams.diff import DiffTotals, RequestDiff, compare, totals
from streams.replay import check_overrides, identified, refed_requests, rejoin
from streams.stored import Selection, stored_requests
from streams.voice import result, say

__all__ = ["add_replay"]

OK = 0

# Records on their way at once. After each such batch the place reached is noted.
BATCH = 200


class Progress(msgspec.Struct):
    """How far a replay has come: enough to go on after an interruption."""

    run_id: str
    mode: str
    settings: dict[str, str]
    next_offsets: dict[int, int] = msgspec.field(default_factory=dict)


@dataclass(slots=True)
class _Outlet:
    """Where replayed records go: a topic, at a rate; nowhere in a dry run."""

    producer: Any
    rate: float | None
    started: float = field(default_factory=time.monotonic)
    sent: int = 0
    waiting: list[Any] = field(default_factory=list)

    async def send(self, topic: str, record: schemas.Record) -> None:
        self.sent += 1
        if self.rate:
            ahead = self.sent / self.rate - (time.monotonic() - self.started)
            await asyncio.sleep(max(0.0, ahead))
        if self.producer is not None:
            future = await self.producer.send(topic, schemas.encode(record), key=record.key)
            self.waiting.append(future)

    async def flush(self) -> None:
        """Wait until the broker has acknowledged all that was sent."""
        waiting, self.waiting = self.waiting, []
        await asyncio.gather(*waiting)


def add_replay(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add the command to the command line."""
    parser = command(
        "replay",
        _run,
        "Make past requests again (refeed), or judge them again without the web (rejoin).",
        "python -m streams replay --mode rejoin --set research_recency_weight=0 --diff --dry-run",
    )
    parser.add_argument("--mode", choices=("refeed", "rejoin"), required=True)
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", type=_assignment,
        help="rejoin: judge under this setting; repeatable",
    )  # fmt: skip
    parser.add_argument("--diff", action="store_true", help="rejoin: show what changes")
    parser.add_argument("--json", action="store_true", help="rejoin: the differences as JSON")
    parser.add_argument(
        "--publish", action="store_true", help="rejoin: to context.ready, not context.replayed"
    )
    parser.add_argument("--dry-run", action="store_true", help="send nothing")
    parser.add_argument("--rate", type=float, help="records a second at most")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="note progress here, go on")
    parser.add_argument("--partition", type=int, action="append", default=[], help="repeatable")
    parser.add_argument("--from-offset", type=int)
    parser.add_argument("--to-offset", type=int, help="up to, not including, this one")
    parser.add_argument("--since", type=moment, help="90m, 2h, 7d ago or an ISO time")
    parser.add_argument("--until", type=moment)
    parser.add_argument("--request-id", action="append", default=[], help="repeatable")
    parser.add_argument("--query", default="", help="only topics with this text in them")


def _assignment(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, got {text!r}")
    return key.strip(), value.strip()


async def _run(arguments: argparse.Namespace, config: StreamConfig) -> int:
    overrides = check_overrides(dict(arguments.set))
    selection = Selection(
        partitions=frozenset(arguments.partition),
        from_offset=arguments.from_offset,
        to_offset=arguments.to_offset,
        since=arguments.since,
        until=arguments.until,
        request_ids=frozenset(arguments.request_id),
        query=arguments.query,
    )
    progress = _progress(arguments, overrides)
    diffs: list[RequestDiff] = []
    async with _outlet(config.broker, arguments) as outlet:
        if arguments.mode == "refeed":
            work = _refeed(config.broker, selection, progress, outlet)
        else:
            target = "context.ready" if arguments.publish else "context.replayed"
            work = _rejoin(config.broker, selection, progress, outlet, target, diffs)
        async with contextlib.aclosing(work):
            count = await _drive(work, outlet, progress, arguments.resume)
    verb = "would be sent" if arguments.dry_run else "sent"
    say(f"{count} requests replayed as run {progress.run_id}, {outlet.sent} records {verb}")
    if arguments.diff or arguments.json:
        _report(diffs, as_json=arguments.json)
    return OK


async def _refeed(
    broker: str, selection: Selection, progress: Progress, outlet: _Outlet
) -> AsyncGenerator[tuple[int, int], None]:
    start = progress.next_offsets
    async for refed in refed_requests(broker, selection, progress.run_id, start=start):
        await outlet.send("topics.requested", refed.request)
        yield refed.partition, refed.offset


async def _rejoin(
    broker: str,
    selection: Selection,
    progress: Progress,
    outlet: _Outlet,
    target: str,
    diffs: list[RequestDiff],
) -> AsyncGenerator[tuple[int, int], None]:
    async for stored in stored_requests(broker, selection, start=progress.next_offsets):
        context = rejoin(stored, progress.settings)
        if stored.context is not None:
            diffs.append(compare(stored.context, context))
        await outlet.send(target, identified(context, progress.run_id))
        yield stored.partition, stored.offset


async def _drive(
    work: AsyncGenerator[tuple[int, int], None],
    outlet: _Outlet,
    progress: Progress,
    note: Path | None,
) -> int:
    count = 0
    async for partition, offset in work:
        count += 1
        progress.next_offsets[partition] = offset + 1
        if count % BATCH == 0:
            await _settle(outlet, progress, note)
            _show(count, outlet)
    await _settle(outlet, progress, None)
    if note is not None:
        note.unlink(missing_ok=True)  # noqa: ASYNC240 - one small local file, at the very end
    return count


async def _settle(outlet: _Outlet, progress: Progress, note: Path | None) -> None:
    await outlet.flush()
    if note is not None:
        # Written beside and moved over: an interruption leaves the old note or the new one.
        partial = note.with_suffix(".partial")
        partial.write_bytes(msgspec.json.encode(progress))
        partial.replace(note)


def _show(count: int, outlet: _Outlet) -> None:
    rate = count / max(time.monotonic() - outlet.started, 1e-9)
    end = "\r" if sys.stderr.isatty() else "\n"
    sys.stderr.write(f"{count} requests, {rate:.0f} a second{end}")
    sys.stderr.flush()


def _progress(arguments: argparse.Namespace, overrides: dict[str, str]) -> Progress:
    note: Path | None = arguments.resume
    if note is None or not note.exists():
        return Progress(str(uuid.uuid4()), arguments.mode, overrides)
    progress = msgspec.json.decode(note.read_bytes(), type=Progress)
    if (progress.mode, progress.settings) != (arguments.mode, overrides):
        raise schemas.EventError(
            f"{note} is of a {progress.mode} under {progress.settings}; remove it to start anew"
        )
    say(f"going on with run {progress.run_id}")
    return progress


@contextlib.asynccontextmanager
async def _outlet(broker: str, arguments: argparse.Namespace) -> AsyncGenerator[_Outlet, None]:
    if arguments.dry_run:
        yield _Outlet(None, arguments.rate)
        return
    producer = AIOKafkaProducer(bootstrap_servers=broker, acks="all", max_batch_size=1)
    try:
        await producer.start()
        yield _Outlet(producer, arguments.rate)
    finally:
        await producer.stop()


def _report(diffs: Sequence[RequestDiff], *, as_json: bool) -> None:
    changed = [diff for diff in diffs if diff.changed]
    summary = totals(diffs)
    if as_json:
        result(msgspec.json.encode({"totals": summary, "requests": changed}).decode())
        return
    for diff in changed:
        result(_row(diff))
    for line in _totals_table(summary):
        result(line)


def _row(diff: RequestDiff) -> str:
    lines = [f"{diff.request_id}  {diff.topic!r}"]
    lines += [f"    + {url}" for url in diff.gained]
    lines += [f"    - {url}" for url in diff.lost]
    lines += [f"    {move.before + 1} -> {move.after + 1}  {move.url}" for move in diff.moved]
    lines += [f"    {each.before:.4f} -> {each.after:.4f}  {each.url}" for each in diff.rescored]
    return "\n".join(lines)


def _totals_table(summary: DiffTotals) -> list[str]:
    rows: list[tuple[str, object]] = [
        ("requests compared", summary.requests),
        ("corpora changed", summary.corpora_changed),
        ("orders changed", summary.orders_changed),
        ("first sources changed", summary.first_sources_changed),
        ("sources gained", summary.sources_gained),
        ("sources lost", summary.sources_lost),
        ("duplicates collapsed", "{} -> {}".format(*summary.duplicates_collapsed)),
        ("thin dropped", "{} -> {}".format(*summary.thin_dropped)),
    ]
    return [f"{name:22} {value}" for name, value in rows]
