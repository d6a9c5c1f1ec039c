"""The join's table beside another writer, on a real broker."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

import schemas
from streams import apps
from streams.config import StreamConfig
from streams.join import JoinState, Phase, encode_state
from streams.produce import produce
from streams.topics import changelog_spec
from tests.support.line import gather_until, running_line, web_settings
from tests.support.webs import many_articles


def _hits(request_id: str, deadline: datetime) -> schemas.SearchHits:
    return schemas.SearchHits(
        event_id="h", request_id=request_id, topic="t", category="c", max_results=5,
        requested_at=deadline, searched_at=deadline, deadline_at=deadline, status="ok",
        pages_wanted=True,
        hits=(schemas.Hit(rank=0, title="t", url="https://a.example/0", snippet="s"),),
    )  # fmt: skip


async def test_what_another_worker_wrote_is_read_and_kept(
    line_config: StreamConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """States appended behind a running worker's back: closed ones stand, others come to their end.

    One request was closed by the other, without pages; one waits for a page until its deadline,
    and no event of either ever comes to this worker.
    """
    monkeypatch.setattr(apps, "UNREAD_INTERVAL", 0.5)
    changelog = changelog_spec(f"{line_config.app_prefix}-join").name
    soon = datetime.now(UTC) + timedelta(seconds=3)
    closed = JoinState(
        phase=Phase.CLOSING, due_at=soon, hits=_hits("closed", soon), close_reason=None
    )
    waiting = JoinState(phase=Phase.COLLECTING, due_at=soon, hits=_hits("waiting", soon))
    async with (
        many_articles(results=1, delay=0) as origin,
        running_line(line_config, web_settings(origin)),
    ):
        # The worker has written before and will write after.
        request = json.dumps({"topic": "harbour", "request_id": "own"}).encode()
        await produce(line_config.broker, "topics.requested", [(b"own", request)])
        await gather_until(line_config.broker, schemas.ContextReady, lambda found: len(found) == 1)
        await produce(
            line_config.broker,
            changelog,
            [(b"closed", encode_state(closed)), (b"waiting", encode_state(waiting))],
        )
        contexts = await gather_until(
            line_config.broker, schemas.ContextReady, lambda found: len(found) >= 3
        )
        page = schemas.PageFetched(
            event_id="p", request_id="closed", rank=0, status="ok", fetched_at=soon,
            url="https://a.example/0", text="Too late for the closed one. " * 20,
        )  # fmt: skip
        await produce(line_config.broker, "pages.fetched", [(b"closed", schemas.encode(page))])
        await produce(
            line_config.broker,
            "topics.requested",
            [(name, b'{"topic": "lantern"}') for name in (b"after-1", b"after-2")],
        )
        contexts = await gather_until(
            line_config.broker,
            schemas.ContextReady,
            lambda found: {"after-1", "after-2"} <= {context.request_id for context in found},
        )
    assert {context.request_id for context in contexts} == {
        "own", "closed", "waiting", "after-1", "after-2",
    }  # fmt: skip
    values = {context.request_id: schemas.encode(context) for context in contexts}
    assert all(schemas.encode(context) == values[context.request_id] for context in contexts)
