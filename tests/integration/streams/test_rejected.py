"""Dead letters can be listed, and sent again without answering anything twice."""

from __future__ import annotations

import subprocess
import sys

import schemas
from streams.config import StreamConfig
from streams.demo import DemoWeb
from streams.produce import produce
from streams.rejected import RejectedFilter, dead_letters, redrive
from tests.support.line import gather, gather_until, running_line, web_settings

# Refused until the setting it names can be changed by a request.
BAD = b'{"topic": "Redis caching", "options": {"not_yet_a_setting": 1}}'


async def letters(broker: str, selected: RejectedFilter) -> list[schemas.EventRejected]:
    return [letter async for letter in dead_letters(broker, selected)]


async def test_redriving_keeps_identities(line_config: StreamConfig) -> None:
    """Rejected again: the same dead letter. Accepted: one context, under the first identity."""
    broker = line_config.broker
    async with DemoWeb() as web, running_line(line_config, web_settings(web.origin)):
        await produce(broker, "topics.requested", [(None, BAD), (b"k", b"{")])
        await gather_until(broker, schemas.EventRejected, lambda found: len(found) == 2)
        found = await letters(broker, RejectedFilter())
        assert len(found) == 2
        assert await letters(broker, RejectedFilter(stage="fetch")) == []
        (bad,) = [letter for letter in found if letter.value == BAD]

        planned = await redrive(broker, RejectedFilter({bad.event_id}), dry_run=True)
        assert [(each.letter.event_id, each.refusal) for each in planned] == [(bad.event_id, None)]
        await redrive(broker, RejectedFilter({bad.event_id}))
        await gather_until(broker, schemas.EventRejected, lambda records: len(records) == 3)
        assert len(await letters(broker, RejectedFilter())) == 2

        # The fault is mended: here, by what the producer sends in its place.
        mended = [(b"", b'{"topic": "Redis caching"}')]
        first = schemas.derived_request_id(bad.topic, bad.partition, bad.offset)
        for _ in range(2):
            await produce(
                broker,
                "topics.requested",
                mended,
                headers=[[("citeflow-request-id", first.encode())]],
            )
        await gather_until(broker, schemas.SearchHits, lambda hits: len(hits) == 2)
        await gather_until(broker, schemas.ContextReady, lambda contexts: len(contexts) == 1)
    contexts = await gather(broker, schemas.ContextReady)
    assert {context.request_id for context in contexts} == {first}
    assert len({schemas.encode(context) for context in contexts}) == 1


async def test_what_was_not_kept_whole_is_not_sent(line_config: StreamConfig) -> None:
    """An event larger than what a dead letter keeps is refused, with the reason."""
    broker = line_config.broker
    large = b'{"topic": "' + b"x" * 600_000
    async with DemoWeb() as web, running_line(line_config, web_settings(web.origin)):
        await produce(broker, "topics.requested", [(b"k", large)])
        await gather_until(broker, schemas.EventRejected, lambda found: len(found) == 1)
    (outcome,) = await redrive(broker, RejectedFilter())
    assert outcome.refusal == "only 262144 of its 600011 bytes were kept"
    assert len(await gather(broker, schemas.EventRejected)) == 1

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "streams", "rejected", *arguments, "--broker", broker],
            capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip

    listed = run("list", "--since", "1h")
    assert (listed.returncode, outcome.letter.event_id in listed.stdout) == (0, True)
    assert "600011 bytes, 262144 kept" in run("show", outcome.letter.event_id).stdout
    assert run("redrive").returncode == 1
    assert run("list", "--since", "yesterday").returncode == 2
