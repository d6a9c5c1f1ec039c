"""Alerts under kills and trouble: does everything due arrive, and nothing too often?

    python -m benchmarks.alerts [--findings 1000] [--kills 10] [--seed 1] [--broker embedded]

Findings of twenty kinds go on Kafka while a worker of the alert application delivers them to a
server on loopback that plays Discord: it limits the rate, answers 429 and 5xx, stalls, hangs up
before and after it took a message, and for a while knows no such webhook. The worker is killed
again and again. Printed and checked are, at the end:

- every finding that the policy of its kind delivers has arrived, and no other;
- of a kind with a cooldown, one finding per window and source (the same one may come twice, when
  the worker died between the post and the note of it: those are counted);
- what was held back is told in the summaries;
- the server was never asked more often than it allows.

`--hurry` shortens the waits between tries by this factor, to have a small run end soon. The exit
status is 1 when a promise was broken.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import contextlib
import itertools
import os
import random
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime

import schemas
from agents.alerts import discord, state
from benchmarks.local_broker import BROKERS, local_broker
from streams import cli
from streams.config import StreamConfig
from streams.produce import produce
from streams.runner import wait_for_topics
from tests.support.discord import FakeDiscord, playing_discord

PARTITIONS = 4
BRIEF_SECONDS = 6.0
LONG_MINUTES = 600.0
SOURCES = 2

CRITICAL = [f"critical_{number}" for number in range(3)]
LOUD = [f"loud_{number}" for number in range(3)]
COOLED = [f"cooled_{number}" for number in range(8)]
BRIEF = [f"brief_{number}" for number in range(2)]
SILENT = ["quiet_0", "quiet_1", "below_0", "info_0"]
KINDS = (*CRITICAL, *LOUD, *COOLED, *BRIEF, *SILENT)

_SEVERITIES = {**dict.fromkeys(CRITICAL, "critical"), **dict.fromkeys(LOUD, "error")}
_SEVERITIES["info_0"] = "info"


def settings() -> dict[str, str]:
    """The policies, as settings by key."""
    found = {f"findings.{kind}.cooldown_minutes": str(LONG_MINUTES) for kind in COOLED}
    found |= {f"findings.{kind}.cooldown_minutes": str(BRIEF_SECONDS / 60) for kind in BRIEF}
    found |= {f"findings.{kind}.delivery": "log_only" for kind in ("quiet_0", "quiet_1")}
    # Critical is not to be silenced: this must do nothing.
    found["findings.critical_0.delivery"] = "log_only"
    found["findings.critical_1.cooldown_minutes"] = str(LONG_MINUTES)
    found["findings.below_0.min_severity"] = "critical"
    return found


def make_findings(count: int) -> list[schemas.AuditFinding]:
    """`count` findings, the kinds in turn, each with two sources."""
    now = datetime.now(UTC)
    made = []
    for number in range(count):
        kind = KINDS[number % len(KINDS)]
        made.append(
            schemas.AuditFinding(
                event_id=schemas.event_id(str(number), "benchmark"),
                timestamp=now,
                source=f"source_{number // len(KINDS) % SOURCES}",
                kind=kind,
                severity=_SEVERITIES.get(kind, "warn"),
                title=f"finding {number}",
                body="A finding of the benchmark.",
                dedup_key=f"{kind}:{number}",
            )
        )
    return made


def make_trouble(rng: random.Random, count: int) -> list[int | str]:
    """How the server answers: mostly well, a bad spell at the start, then trouble at random."""
    spell: list[int | str] = ["ok", "lost", 503, 503, 503, "ok", 404]
    kinds: Sequence[int | str] = (429, 429, 500, 502, 503, "drop", "lost", "slow")
    return spell + ["ok" if rng.random() < 0.92 else rng.choice(kinds) for _ in range(count)]


@contextlib.asynccontextmanager
async def _worker(
    kind: str, broker: str, url: str, hurry: float
) -> AsyncIterator[asyncio.subprocess.Process]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("CITEFLOW_")}
    env |= {"CITEFLOW_" + key.upper().replace(".", "_"): value for key, value in settings().items()}
    env |= {
        "CITEFLOW_BROKER": broker,
        "CITEFLOW_PARTITIONS": str(PARTITIONS),
        "CITEFLOW_BROKER_PROFILE": kind,
        "CITEFLOW_SESSION_TIMEOUT": "2",
        "CITEFLOW_DISCORD_WEBHOOK_URL": url,
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.alerts", "--as-worker", "--hurry", str(hurry),
        stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE, env=env,
    )  # fmt: skip
    assert process.stderr is not None
    try:
        async with asyncio.timeout(60):
            while b"worker ready" not in (line := await process.stderr.readline()):
                if not line:
                    raise RuntimeError(f"the worker ended with {await process.wait()}")
        drain = asyncio.ensure_future(process.stderr.read())
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
    await drain


async def _run(arguments: argparse.Namespace) -> int:
    rng = random.Random(arguments.seed)
    findings = make_findings(arguments.findings)
    by_id = {finding.event_id: finding for finding in findings}
    due = {f.event_id for f in findings if f.kind in (*CRITICAL, *LOUD)}
    pairs = {(f.kind, f.source) for f in findings if f.kind in (*COOLED, *BRIEF)}
    started = time.monotonic()
    async with local_broker(arguments.broker) as broker, playing_discord() as server:
        await wait_for_topics(StreamConfig(broker=broker, partitions=PARTITIONS))
        server.script.extend(make_trouble(rng, arguments.findings))
        records = [(finding.key, schemas.encode(finding)) for finding in findings]
        lived = []
        for number in range(arguments.kills):
            # Some before each worker looks, so that windows of every kind begin all along.
            await produce(broker, "audit.findings", records[number :: arguments.kills + 1])
            async with _worker(arguments.broker, broker, server.url, arguments.hurry):
                lived.append(rng.uniform(0.1, arguments.longest_life))
                await asyncio.sleep(lived[-1])
        await produce(broker, "audit.findings", records[arguments.kills :: arguments.kills + 1])
        async with _worker(arguments.broker, broker, server.url, arguments.hurry) as worker:
            report = Report(server, by_id, due, pairs)
            await _until(
                lambda: report.complete() or worker.returncode is not None, arguments.patience
            )
            # Whatever would come too often has time to come.
            await asyncio.sleep(3)
            ended = worker.returncode
        broken = report.broken()
        if ended is not None:
            broken.append(f"the worker ended with {ended}")
        report.print(time.monotonic() - started, lived)
    for line in broken:
        print(f"BROKEN: {line}")
    return 1 if broken else 0


async def _until(condition: Callable[[], bool], seconds: float) -> None:
    give_up_at = time.monotonic() + seconds
    while time.monotonic() < give_up_at:
        if condition():
            return
        await asyncio.sleep(0.2)


class Report:
    """What arrived at the server, against what should have."""

    def __init__(
        self,
        server: FakeDiscord,
        by_id: Mapping[str, schemas.AuditFinding],
        due: set[str],
        pairs: set[tuple[str, str]],
    ) -> None:
        self._server, self._by_id, self._due, self._pairs = server, by_id, due, pairs

    def arrived(self) -> list[tuple[float, str]]:
        """Time and id of each finding taken, summaries left out."""
        return [
            (at, message["embeds"][0]["footer"]["text"])
            for at, message in self._server.accepted
            if message["embeds"][0]["footer"]["text"] in self._by_id
        ]

    def held_back(self) -> dict[str, int]:
        """How many findings each summary tells of, by its id; of one that came twice the last."""
        told = {}
        for embed in self._server.embeds:
            if (event_id := embed["footer"]["text"]) not in self._by_id:
                told[event_id] = int({f["name"]: f["value"] for f in embed["fields"]}["count"])
        return told

    def brief_total(self) -> tuple[int, int]:
        """Of the kinds with a short window: findings emitted, and told of, also in summaries."""
        emitted = sum(f.kind in BRIEF for f in self._by_id.values())
        alone = {event_id for _, event_id in self.arrived() if self._by_id[event_id].kind in BRIEF}
        return emitted, len(alone) + sum(self.held_back().values())

    def complete(self) -> bool:
        """Whether all that is waited for has arrived."""
        ids = {event_id for _, event_id in self.arrived()}
        pairs = {(self._by_id[i].kind, self._by_id[i].source) for i in ids}
        emitted, told = self.brief_total()
        return self._due <= ids and self._pairs <= pairs and told >= emitted

    def broken(self) -> list[str]:
        """Each promise that was not kept."""
        broken = []
        ids = {event_id for _, event_id in self.arrived()}
        if missing := self._due - ids:
            broken.append(f"{len(missing)} findings never arrived")
        if unwanted := [i for i in ids if self._by_id[i].kind in SILENT]:
            broken.append(f"{len(unwanted)} findings arrived that are not delivered")
        for kind, source in sorted(self._pairs):
            broken += self._broken_windows(kind, source)
        emitted, told = self.brief_total()
        if emitted != told:
            broken.append(f"{told} of {emitted} findings with a short window were told of")
        if self._server.over_the_limit:
            broken.append(f"{self._server.over_the_limit} requests beyond the limit")
        return broken

    def _broken_windows(self, kind: str, source: str) -> list[str]:
        first: dict[str, float] = {}
        last: dict[str, float] = {}
        for at, event_id in self.arrived():
            finding = self._by_id[event_id]
            if (finding.kind, finding.source) == (kind, source):
                first.setdefault(event_id, at)
                last[event_id] = at
        if not first:
            return [f"{kind} from {source} never arrived"]
        window = LONG_MINUTES * 60 if kind in COOLED else BRIEF_SECONDS
        order = sorted(first, key=first.__getitem__)
        return [
            f"{kind} from {source} came again after {first[after] - last[before]:.1f} s"
            for before, after in itertools.pairwise(order)
            # A repetition of one finding after a crash begins its window anew.
            if first[after] - last[before] < window
        ]

    def print(self, seconds: float, lived: Sequence[float]) -> None:
        """Say what there was."""
        arrived = self.arrived()
        counted = collections.Counter(event_id for _, event_id in arrived)
        twice = sum(count - 1 for count in counted.values())
        asked = self._server.asked
        print(
            f"{len(self._by_id)} findings of {len(KINDS)} kinds, {len(lived)} kills after "
            f"{', '.join(f'{seconds:.1f}' for seconds in lived)} s"
        )
        print(f"{asked} requests, {len(self._server.accepted)} taken, in {seconds:.0f} s")
        print(f"{len(counted)} findings arrived, {twice} of them once more")
        print(f"{len(self.held_back())} summaries of {sum(self.held_back().values())} findings")
        print(f"{self._server.over_the_limit} requests beyond the limit")


def _as_worker(hurry: float) -> int:
    state.FIRST_RETRY *= hurry
    discord.FIRST_REST *= hurry
    discord.GONE_REST *= hurry
    discord.TIMEOUT_SECONDS = max(1.0, discord.TIMEOUT_SECONDS * hurry)
    return cli.main(["worker", "--app", "alert"])


def main(argv: Sequence[str] | None = None) -> int:
    """Run; returns the exit status."""
    parser = argparse.ArgumentParser(description="Alerts under kills and trouble.")
    parser.add_argument("--findings", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--longest-life", type=float, default=12.0, help="seconds before a kill")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--broker", choices=BROKERS, default="embedded")
    parser.add_argument("--patience", type=float, default=900.0, help="seconds after the kills")
    parser.add_argument("--hurry", type=float, default=1.0, help="factor for waits between tries")
    parser.add_argument("--as-worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.as_worker:
        return _as_worker(arguments.hurry)
    return asyncio.run(_run(arguments))


if __name__ == "__main__":
    raise SystemExit(main())
