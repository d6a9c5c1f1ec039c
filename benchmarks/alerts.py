"""A thousand findings, ten kills and a Discord that fails: does every alert arrive, and how often?

    python -m benchmarks.alerts [--findings 1000] [--kills 10]

Twenty kinds from two sources each: two kinds are critical, two have no cooldown, the others a
long one. The server plays Discord on loopback: it limits to five posts in two seconds, fails,
stalls and drops connections now and then. Exit code 1 when an alert that is due is missing, a
kind with a cooldown was posted twice for one source, or the limit was exceeded.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import time
from collections import Counter
from datetime import UTC, datetime

import schemas
from benchmarks.local_broker import BROKERS, local_broker
from streams.config import StreamConfig
from streams.produce import produce
from streams.runner import wait_for_topics
from tests.support.discord import FakeDiscord, playing_discord

PARTITIONS = 4
CRITICAL, LOUD, COOLED = ("critical_0", "critical_1"), ("loud_0", "loud_1"), 16
# Of findings with no cooldown only so many: at five posts in two seconds all would take long.
UNCOOLED = 60


def _findings(count: int, rng: random.Random) -> list[schemas.AuditFinding]:
    kinds = [f"cooled_{number}" for number in range(COOLED)]
    uncooled = [*CRITICAL, *LOUD]
    chosen = [uncooled[n % 4] if n < UNCOOLED else kinds[n % COOLED] for n in range(count)]
    rng.shuffle(chosen)
    return [
        schemas.AuditFinding(
            event_id=f"event-{number}", timestamp=datetime.now(UTC),
            source=f"source-{rng.randrange(2)}", kind=kind, title=f"finding {number}",
            severity="critical" if kind in CRITICAL else "error", body="b", dedup_key=str(number),
        )
        for number, kind in enumerate(chosen)
    ]  # fmt: skip


def _arrived(server: FakeDiscord) -> Counter[str]:
    return Counter(embed["footer"]["text"] for embed in server.embeds if "footer" in embed)


async def run(arguments: argparse.Namespace) -> int:
    """One run; returns the exit code."""
    rng = random.Random(arguments.seed)
    findings = _findings(arguments.findings, rng)
    by_id = {finding.event_id: finding for finding in findings}
    loud = {f.event_id for f in findings if f.kind in (*CRITICAL, *LOUD)}
    pairs = {(f.kind, f.source) for f in findings if f.event_id not in loud}
    started = time.monotonic()
    async with local_broker(arguments.broker) as broker, playing_discord() as server:
        await wait_for_topics(StreamConfig(broker=broker, partitions=PARTITIONS))
        await produce(broker, "audit.findings", [(f.key, schemas.encode(f)) for f in findings])
        for _ in range(arguments.findings // 20):
            server.script.extend(rng.choices([503, 500, 429, "drop", 502], k=1))
        env = (
            {name: value for name, value in os.environ.items() if "CITEFLOW_" not in name}
            | {
                "CITEFLOW_BROKER": broker,
                "CITEFLOW_PARTITIONS": str(PARTITIONS),
                "CITEFLOW_BROKER_PROFILE": arguments.broker,
                "CITEFLOW_SESSION_TIMEOUT": "3",
                "CITEFLOW_DISCORD_WEBHOOK_URL": server.url,
            }
            | {f"CITEFLOW_FINDINGS_COOLED_{n}_COOLDOWN_MINUTES": "600" for n in range(COOLED)}
        )
        for kill in range(arguments.kills + 1):
            worker = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "streams", "worker", "--app", "alert",
                stdin=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL, env=env,
            )  # fmt: skip
            try:
                ends = time.monotonic() + rng.uniform(4, 9)
                if kill == arguments.kills:
                    ends = time.monotonic() + arguments.patience
                while time.monotonic() < ends:
                    await asyncio.sleep(0.1)
                    arrived = _arrived(server)
                    met = {(by_id[e].kind, by_id[e].source) for e in arrived if e not in loud}
                    if kill == arguments.kills and loud <= arrived.keys() and met == pairs:
                        break
            finally:
                worker.kill()
                await worker.wait()
    arrived = _arrived(server)
    posted = Counter((by_id[e].kind, by_id[e].source) for e in arrived if e not in loud)
    report = {
        "findings": len(findings),
        "due": len(loud) + len(pairs),
        "arrived": len(arrived),
        "missing": len(loud - arrived.keys()) + len(pairs - posted.keys()),
        "cooled_and_posted_again": sum(count - 1 for count in posted.values()),
        "same_alert_twice": arrived.total() - len(arrived),
        "over_the_limit": server.over_the_limit,
        "posts_asked": server.asked,
        "seconds": round(time.monotonic() - started),
    }
    print(json.dumps(report, indent=2))
    kept = not (report["missing"] or report["cooled_and_posted_again"] or report["over_the_limit"])
    print("the promise was kept" if kept else "BROKEN")
    return 0 if kept else 1


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--broker", choices=BROKERS, default="embedded")
    parser.add_argument("--findings", type=int, default=1_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--patience", type=float, default=300.0, help="seconds for the last worker")
    parser.add_argument("--seed", type=int, default=1)
    sys.exit(asyncio.run(run(parser.parse_args())))


if __name__ == "__main__":
    main()
