"""What operators hear of: all that is due, not too often, and no secret."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest

from citeflow.findings import collect_findings, emit_finding
from streams.audit import audit_record
from streams.config import StreamConfig
from tests.support.alerts import NOW, alerting, finding, send, titles, until
from tests.support.broker import BACKEND
from tests.support.discord import playing_discord

ROOT = Path(__file__).parents[2]


@pytest.mark.broker
@pytest.mark.timeout(240)
@pytest.mark.skipif(BACKEND == "containers", reason="starts a broker of its own")
async def test_what_is_due_arrives_over_kills() -> None:
    """40 findings of 20 kinds, trouble and two kills: see the promises in benchmarks.alerts."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "benchmarks.alerts", "--broker", BACKEND, "--findings", "40",
        "--kills", "2", "--longest-life", "2.5", "--hurry", "0.02", "--patience", "150",
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    report, _ = await process.communicate()
    assert process.returncode == 0, report.decode()


async def test_case_30(line_config: StreamConfig, caplog: pytest.LogCaptureFixture) -> None:
    """Of the research corpus: severities, cooldowns, limits and mentions, as written there."""
    with collect_findings() as emitted:
        emit_finding(source="s", kind="k", title="t", body="b", severity="warning")
    stored = audit_record(emitted[0], stage="search", request_id="r", timestamp=NOW)
    assert stored.severity == "warn"

    unreadable = {"kind": "kind_with_a_typo"}
    async with playing_discord() as server:
        server.script.append(429)
        server.retry_after = 0.5
        settings = {"findings.kind_with_a_typo.cooldown_minutes": "soon"}
        async with alerting(line_config, server, **settings):
            started = time.monotonic()
            await send(line_config, *(finding(number) for number in range(5)))
            await send(line_config, finding(10, severity="info", source="quiet"))
            await send(line_config, finding(11, source="fetch_agent"))
            await send(line_config, finding(12, severity="critical"))
            await send(line_config, finding(13, **unreadable), finding(14, **unreadable))
            hostile = "@everyone <@123> [free](https://evil.example/x) " + "ä🎉" * 2500
            await send(line_config, finding(15, source="last", title=hostile, body=hostile))
            await until(lambda: len(server.accepted) >= 6)
        posted = titles(server)
    assert {f"finding {number}" for number in (0, 11, 12, 13, 14)} < set(posted)
    assert len(posted) == 6
    assert "findings.kind_with_a_typo.cooldown_minutes is 'soon': no cooldown" in caplog.text
    first = next(at for at, m in server.accepted if "finding 0" in m["embeds"][0]["title"])
    assert first - started >= 0.5
    (last,) = (m for _, m in server.accepted if "everyone" in m["embeds"][0]["title"])
    (embed,) = last["embeds"]
    assert last["allowed_mentions"] == {"parse": []}
    assert "content" not in last
    for text, limit in ((embed["title"], 256), (embed["description"], 2000)):
        assert len(text.encode("utf-16-le")) // 2 <= limit
        assert "@everyone" not in text
        assert "<@" not in text.replace("\\<", "")
        assert "](" not in text
        assert "://" not in text
        assert text.endswith("…")
