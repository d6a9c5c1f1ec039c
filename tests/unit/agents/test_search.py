"""The search agent: every request has an answer, and all that follows depends on events."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import schemas
from agents import Inbound
from agents import backlog as backlog_module
from agents.backlog import Backlog
from agents.search import SearchAgent
from agents.slots import Slots
from citeflow.findings import collect_findings
from citeflow.search import SearchAttempt, SearchHit, SearchOutcome, SearchProvenance, SearchStatus
from citeflow.settings import SiteConfig

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
SENT = datetime(2026, 3, 1, 11, tzinfo=UTC)


class Engine:
    """Answers with what it was given, and remembers what it was asked."""

    def __init__(self, outcome: SearchOutcome) -> None:
        self.outcome = outcome
        self.asked: list[tuple[str, int, float | None]] = []

    async def search(self, query: str, k: int = 5, timeout: float | None = None) -> SearchOutcome:
        self.asked.append((query, k, timeout))
        return self.outcome


class Posts:
    """A posts database with one row, or a broken one."""

    def __init__(self, *, broken: bool = False) -> None:
        self.broken = broken

    async def fetch(self, query: str, *args: Any) -> list[dict[str, Any]]:
        if self.broken:
            raise OSError("gone")
        return [{"title": "Caching at home", "slug": "caching-at-home", "published_at": None}]


FOUND = SearchOutcome(
    SearchStatus.OK,
    (SearchHit("One", "https://a.example/1", "s1"), SearchHit("Two", "https://b.example/2", "s2")),
    provenance=SearchProvenance(backend="searxng", query_used="q", backends_tried=("searxng",)),
)


async def answer(
    request: schemas.TopicRequested,
    *,
    outcome: SearchOutcome = FOUND,
    key: bytes | None = None,
    settings: dict[str, object] | None = None,
    posts: Posts | None = None,
) -> tuple[schemas.SearchHits, Engine]:
    engine = Engine(outcome)
    agent = SearchAgent(
        searcher=engine,
        site_config=SiteConfig(settings, environ={}),
        clock=lambda: NOW,
        posts=posts,
    )
    sent: list[schemas.Record] = []

    async def emit(record: schemas.Record) -> None:
        sent.append(record)

    origin = schemas.Origin("topics.requested", 3, 41, SENT, key)
    await agent.handle(Inbound(request, origin), emit)
    (hits,) = sent
    assert isinstance(hits, schemas.SearchHits)
    return hits, engine


async def test_hits_keep_the_engines_order_and_their_provenance() -> None:
    """Ranks follow the engine's order; who answered which query is on the record."""
    hits, engine = await answer(schemas.TopicRequested(topic="Redis caching", request_id="r-1"))
    assert [(hit.rank, hit.url) for hit in hits.hits] == [
        (0, "https://a.example/1"),
        (1, "https://b.example/2"),
    ]
    assert hits.provenance.backend == "searxng"
    assert hits.requested_at == SENT
    assert [reference.url for reference in hits.references]
    assert engine.asked == [("Redis caching", 5, 60.0)]


@pytest.mark.parametrize(
    ("request_id", "key", "expected"),
    [
        ("given", b"key", "given"),
        (None, b"key-7", "key-7"),
        (None, None, schemas.derived_request_id("topics.requested", 3, 41)),
        (None, b"\xff\xfe", schemas.derived_request_id("topics.requested", 3, 41)),
        (None, b"has space", schemas.derived_request_id("topics.requested", 3, 41)),
        (None, b"x" * 129, schemas.derived_request_id("topics.requested", 3, 41)),
    ],
)
async def test_request_id(request_id: str | None, key: bytes | None, expected: str) -> None:
    """The record's own, else a usable key, else one derived from the position."""
    hits, _ = await answer(schemas.TopicRequested(topic="x", request_id=request_id), key=key)
    assert hits.request_id == expected
    assert hits.key == expected.encode()


async def test_a_failed_search_is_a_record_too() -> None:
    """Status, note and wait of a refusal are carried on; there are no hits."""
    refused = SearchOutcome(SearchStatus.RATE_LIMITED, note="slow down", retry_after=30.0)
    hits, _ = await answer(
        schemas.TopicRequested(topic="x"),
        outcome=refused,
        settings={"stream_park_blocked_requests": False},
    )
    assert (hits.status, hits.note, hits.retry_after) == ("rate_limited", "slow down", 30.0)
    assert hits.hits == ()


async def test_settings_in_force_travel_with_the_hits() -> None:
    """What differs from the defaults, the request's own options first, is on the record."""
    hits, _ = await answer(
        schemas.TopicRequested(topic="x", options={"research_min_snippet_words": 3}),
        settings={"research_min_snippet_words": "20", "research_recency_weight": "0.9"},
    )
    assert hits.settings == {
        "research_min_snippet_words": "3",
        "research_recency_weight": "0.9",
    }


@pytest.mark.parametrize(
    ("topic", "options"),
    [
        (" \u200b\u0000 ", {}),
        ("x", {"fetch_allowed_internal_origins": "http://127.0.0.1"}),
        ("x", {"no_such": 1}),
        ("x", {"research_min_snippet_words": "many"}),
    ],
)
async def test_unusable_requests_are_refused(topic: str, options: dict[str, Any]) -> None:
    """No visible topic, a setting a request may not change, a value that cannot be read."""
    with pytest.raises(schemas.EventError):
        await answer(schemas.TopicRequested(topic=topic, options=options))


async def test_topic_is_cleaned() -> None:
    """Control characters and runs of white space do not reach the engine."""
    hits, engine = await answer(schemas.TopicRequested(topic=" a\u0000b\n\tc\u202e "))
    assert hits.topic == "a b c"
    assert engine.asked[0][0] == "a b c"


async def test_deadline() -> None:
    """The earlier of the request's deadline and the join's timeout; none asked when past."""
    soon = NOW + timedelta(seconds=5)
    hits, engine = await answer(schemas.TopicRequested(topic="x", deadline=soon))
    assert hits.deadline_at == soon
    assert engine.asked[0][2] == 5.0

    late = NOW + timedelta(days=1)
    hits, _ = await answer(schemas.TopicRequested(topic="x", deadline=late))
    assert hits.deadline_at == NOW + timedelta(seconds=120)

    hits, engine = await answer(schemas.TopicRequested(topic="x", deadline=NOW))
    assert (hits.status, engine.asked) == ("timeout", [])


async def test_own_posts_and_a_broken_database() -> None:
    """Posts that share a word are linked; a failing database costs only them."""
    request = schemas.TopicRequested(topic="Redis caching")
    hits, _ = await answer(request, posts=Posts())
    assert [link.slug for link in hits.internal_links] == ["caching-at-home"]
    with collect_findings() as findings:
        hits, _ = await answer(request, posts=Posts(broken=True))
    assert hits.internal_links == ()
    assert [finding.kind for finding in findings] == ["internal_link_search_failed"]


async def test_giving_up_answers_unavailable() -> None:
    """When handling fails for good the request still gets hits that say so."""
    agent = SearchAgent(
        searcher=Engine(FOUND), site_config=SiteConfig(environ={}), clock=lambda: NOW
    )
    sent: list[schemas.Record] = []

    async def emit(record: schemas.Record) -> None:
        sent.append(record)

    event = Inbound(
        schemas.TopicRequested(topic="x"), schemas.Origin("topics.requested", 0, 0, SENT)
    )
    await agent.give_up(event, RuntimeError("secret"), emit)
    (hits,) = sent
    assert isinstance(hits, schemas.SearchHits)
    assert hits.status == "unavailable"
    assert "secret" not in (hits.note or "")


class Scripted:
    """Answers one outcome after the other, on a clock that sleeping moves."""

    def __init__(self, *outcomes: SearchOutcome, seconds: float = 1.0) -> None:
        self.outcomes = list(outcomes)
        self.seconds = seconds
        self.now = NOW
        self.asked: list[float | None] = []
        self.slept: list[float] = []

    async def search(self, query: str, k: int = 5, timeout: float | None = None) -> SearchOutcome:
        self.asked.append(timeout)
        self.now += timedelta(seconds=self.seconds)
        return self.outcomes[min(len(self.asked), len(self.outcomes)) - 1]

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += timedelta(seconds=seconds)

    async def handle(
        self, request: schemas.TopicRequested, settings: dict[str, object] | None = None
    ) -> schemas.SearchHits:
        agent = SearchAgent(
            searcher=self,
            site_config=SiteConfig(settings, environ={}),
            clock=lambda: self.now,
            budget=80.0,
            sleep=self.sleep,
        )
        sent: list[schemas.Record] = []

        async def emit(record: schemas.Record) -> None:
            sent.append(record)

        origin = schemas.Origin("topics.requested", 3, 41, SENT, None)
        await agent.handle(Inbound(request, origin), emit)
        (hits,) = sent
        assert isinstance(hits, schemas.SearchHits)
        return hits


def refused(
    retry_after: float | None, status: SearchStatus = SearchStatus.BLOCKED
) -> SearchOutcome:
    return SearchOutcome(status, note="no", retry_after=retry_after)


INCONCLUSIVE = SearchOutcome(
    SearchStatus.BLOCKED,
    note="inconclusive",
    provenance=SearchProvenance(
        attempts=(SearchAttempt("a", "q", SearchStatus.EMPTY),),
    ),
)


@pytest.mark.parametrize(
    ("first", "slept"),
    [
        (refused(20.0), [20.2]),
        (refused(None), [15.2]),
        (refused(5.0, SearchStatus.CHALLENGED), [5.2]),
        (refused(0.0, SearchStatus.RATE_LIMITED), [0.2]),
        (refused(77.0), [77.2]),
        (refused(79.0), []),
        (refused(3600.0), []),
        (refused(1.0, SearchStatus.UNREACHABLE), []),
        (SearchOutcome(SearchStatus.EMPTY), []),
        (INCONCLUSIVE, []),
        (FOUND, []),
    ],
)
async def test_a_blocked_request_is_parked_once(first: SearchOutcome, slept: list[float]) -> None:
    """For the shortest wait asked for, if a search still fits into the budget after it."""
    engine = Scripted(first, FOUND)
    hits = await engine.handle(schemas.TopicRequested(topic="x"))
    assert engine.slept == pytest.approx(slept)
    assert len(engine.asked) == 1 + len(slept)
    assert hits.status == (FOUND if slept else first).status.value


async def test_there_is_no_second_parking() -> None:
    """Refused again, the request goes on as refused."""
    engine = Scripted(refused(5.0))
    hits = await engine.handle(schemas.TopicRequested(topic="x"))
    assert (len(engine.asked), hits.status) == (2, "blocked")


async def test_parking_can_be_turned_off() -> None:
    """The setting is read at each request."""
    engine = Scripted(refused(5.0), FOUND)
    hits = await engine.handle(
        schemas.TopicRequested(topic="x"), {"stream_park_blocked_requests": False}
    )
    assert (engine.slept, hits.status) == ([], "blocked")


@pytest.mark.parametrize(("seconds", "parked"), [(10, False), (30, True)])
async def test_parking_keeps_the_requests_deadline(seconds: int, parked: bool) -> None:
    """What would be over before the wait is over is not parked; the second search is cut to it."""
    engine = Scripted(refused(20.0), FOUND)
    deadline = NOW + timedelta(seconds=seconds)
    await engine.handle(schemas.TopicRequested(topic="x", deadline=deadline))
    assert bool(engine.slept) is parked
    assert engine.asked[0] == seconds
    if parked:
        assert engine.asked[1] == pytest.approx(30 - 1 - 20.2)


async def test_all_searching_ends_within_the_budget() -> None:
    """A deadline of minutes in the settings does not outlive the handler's own."""
    engine = Scripted(refused(20.0), FOUND, seconds=30.0)
    await engine.handle(
        schemas.TopicRequested(topic="x"), {"web_research_search_deadline_seconds": 600}
    )
    assert engine.asked == [80.0, pytest.approx(80 - 30 - 20.2)]


async def test_a_deadline_is_kept_though_no_slot_is_free() -> None:
    """A request that does not get its turn before its deadline is answered `timeout` by then."""
    slots = Slots(lambda: 1)
    await slots.acquire()
    agent = SearchAgent(
        searcher=Engine(FOUND),
        site_config=SiteConfig(environ={}),
        clock=lambda: datetime.now(UTC),
        slots=slots,
    )
    sent: list[schemas.Record] = []

    async def emit(record: schemas.Record) -> None:
        sent.append(record)

    deadline = datetime.now(UTC) + timedelta(seconds=0.2)
    event = Inbound(
        schemas.TopicRequested(topic="x", deadline=deadline),
        schemas.Origin("topics.requested", 0, 0, SENT),
    )
    await asyncio.wait_for(agent.handle(event, emit), 10)
    (hits,) = sent
    assert isinstance(hits, schemas.SearchHits)
    assert (hits.status, hits.hits) == ("timeout", ())


async def test_no_search_is_begun_while_reading_is_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The request waits until younger hits are taken, at most until its deadline."""
    monkeypatch.setattr(backlog_module, "LINGER_SECONDS", 0.0)
    backlog = Backlog(lambda: NOW)
    engine = Engine(FOUND)
    agent = SearchAgent(
        searcher=engine,
        site_config=SiteConfig({"stream_max_hits_age_seconds": 20}, environ={}),
        clock=lambda: NOW,
        backlog=backlog,
    )
    sent: list[schemas.Record] = []

    async def emit(record: schemas.Record) -> None:
        sent.append(record)

    request = schemas.TopicRequested(topic="x", request_id="r-1")
    event = Inbound(request, schemas.Origin("topics.requested", 3, 41, SENT, None))
    with backlog.handling(NOW - timedelta(seconds=21)):
        handling = asyncio.create_task(agent.handle(event, emit))
        for _ in range(10):
            await asyncio.sleep(0)
        assert engine.asked == []
        with backlog.handling(NOW - timedelta(seconds=5)):
            await asyncio.wait_for(handling, 5)
    assert len(engine.asked) == len(sent) == 1


async def test_a_search_does_not_wait_for_ever() -> None:
    """When patience ends the request is searched although reading is behind."""
    backlog = Backlog(lambda: NOW)
    engine = Engine(FOUND)
    agent = SearchAgent(
        searcher=engine,
        site_config=SiteConfig(environ={}),
        clock=lambda: NOW,
        backlog=backlog,
        patience=0.01,
    )

    async def emit(record: schemas.Record) -> None:
        assert isinstance(record, schemas.SearchHits)

    request = schemas.TopicRequested(topic="x", request_id="r-1")
    event = Inbound(request, schemas.Origin("topics.requested", 3, 41, SENT, None))
    with backlog.handling(NOW - timedelta(hours=1)):
        await asyncio.wait_for(agent.handle(event, emit), 5)
    assert len(engine.asked) == 1
