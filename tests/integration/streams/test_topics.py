"""Topics are created with the right partitions, or the worker does not start."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from streams.apps import required_topics
from streams.config import StreamConfig
from streams.runner import BrokerUnreachableError, wait_for_topics
from streams.topics import TopicError, check_topics, ensure_topics


async def test_creates_what_is_missing_and_nothing_twice(stream_config: StreamConfig) -> None:
    """The first call creates every topic with the configured partitions, the second none."""
    specs = required_topics(stream_config)
    created = await ensure_topics(stream_config.broker, specs, partitions=4)
    assert sorted(created) == sorted(spec.name for spec in specs)
    assert await ensure_topics(stream_config.broker, specs, partitions=4) == []
    counts = await check_topics(stream_config.broker, specs)
    assert set(counts.values()) == {4}


async def test_a_topic_with_other_partitions_is_refused(stream_config: StreamConfig) -> None:
    """A mismatch would lose events silently, so it is an error that names the topic."""
    admin = AIOKafkaAdminClient(bootstrap_servers=stream_config.broker)
    await admin.start()
    try:
        await admin.create_topics([NewTopic("pages.fetched", 3, 1)])
    finally:
        await admin.close()
    with pytest.raises(TopicError, match=r"pages\.fetched has 3"):
        await wait_for_topics(stream_config)


async def test_no_broker_is_a_clear_error() -> None:
    """A worker without a broker says which broker it wanted."""
    config = replace(StreamConfig(), broker="127.0.0.1:9")
    with pytest.raises(BrokerUnreachableError, match=r"127\.0\.0\.1:9"):
        await wait_for_topics(config, timeout=0.0)


async def test_commands(stream_config: StreamConfig) -> None:
    """`topics check` fails before `topics create` and passes after; nothing prints a traceback."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "streams", *arguments, "--broker", stream_config.broker],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={"CITEFLOW_PARTITIONS": "4"},
        )

    before = run("topics", "check")
    assert (before.returncode, "missing" in before.stdout) == (1, True)
    contexts = run("contexts")
    assert (contexts.returncode, "topics create" in contexts.stderr) == (1, True)
    assert run("topics", "create").returncode == 0
    assert run("topics", "check").returncode == 0
    listed = run("topics", "list")
    assert listed.stdout.count("4 partitions") == 11
    assert run("contexts").stdout == ""
    for result in (before, contexts, listed):
        assert "Traceback" not in result.stderr
