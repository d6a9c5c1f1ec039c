"""How a site is asked: slots, intervals, pauses, repetition, robots.txt, and nothing twice."""

from __future__ import annotations

import asyncio
import time

import pytest

from citeflow.fetch import FetchOutcome, FetchStatus, PageFetcher
from citeflow.settings import SiteConfig
from tests.support.loopback import FakeNetwork, LoopbackServer, response, serving

TEXT = "Lithium cells lose capacity when repeatedly charged above eighty percent."
PAGE = response(f"<html><body><p>{TEXT}</p></body></html>")
PUBLIC = "93.184.216.34"


def fetcher(server: LoopbackServer, **values: object) -> PageFetcher:
    values = {
        "fetch_host_interval_ms": 0,
        "fetch_allowed_internal_origins": server.origin,
        **values,
    }
    return PageFetcher(SiteConfig(values, environ={}))


class Scripted(LoopbackServer):
    """Gives its answers one after the other, the last one again and again; None: a reset."""

    def __init__(self, *answers: bytes | None) -> None:
        super().__init__(self._next)
        self._answers = list(answers)

    async def _next(
        self, _path: str, _headers: dict[str, str], writer: asyncio.StreamWriter
    ) -> None:
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer is None:
            writer.transport.abort()
        else:
            writer.write(answer)


class Slow(LoopbackServer):
    """Takes its time, and counts how many it serves at once."""

    def __init__(self, seconds: float) -> None:
        super().__init__(self._page)
        self._seconds = seconds
        self.running = self.most = 0
        self.started: list[float] = []

    async def _page(
        self, _path: str, _headers: dict[str, str], writer: asyncio.StreamWriter
    ) -> None:
        self.started.append(time.monotonic())
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(self._seconds)
        self.running -= 1
        writer.write(PAGE)


async def test_one_host_is_asked_a_few_times_at_once() -> None:
    """No more requests at once than the setting says, and all are served."""
    async with Slow(0.05) as server, fetcher(server, fetch_host_concurrency=3) as reader:
        pages = await asyncio.gather(*(reader.fetch(f"{server.origin}/{n}") for n in range(20)))
    assert all(page.ok for page in pages)
    assert server.most == 3


async def test_requests_to_one_host_keep_their_distance() -> None:
    """Between two starts lies the interval, also when there are free slots."""
    async with Slow(0) as server, fetcher(server, fetch_host_interval_ms=300) as reader:
        await asyncio.gather(*(reader.fetch(f"{server.origin}/{n}") for n in range(4)))
    # On a busy machine a request may be noticed late, and then seem to be close to the next.
    assert server.started[3] - server.started[0] > 0.5


async def test_a_fetch_that_is_cancelled_in_line_gives_up_its_place() -> None:
    """Who waits for a slot and leaves does not block those behind."""
    async with Slow(0.2) as server, fetcher(server, fetch_host_concurrency=1) as reader:
        tasks = [asyncio.create_task(reader.fetch(f"{server.origin}/{n}")) for n in range(4)]
        await asyncio.sleep(0.05)
        for task in tasks[1:3]:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(each, FetchOutcome) and each.ok for each in done] == [
        True, False, False, True,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "failure",
    [
        None,
        response(status="503 Service Unavailable"),
        response(status="502 Bad Gateway"),
        response(status="504 Gateway Timeout"),
        response(status="429 Too Many", headers=[("Retry-After", "0")]),
    ],
)
async def test_what_passes_is_tried_once_more(failure: bytes | None) -> None:
    """A reset and the answers of a restarting server are repeated, once."""
    async with Scripted(failure, PAGE) as server, fetcher(server) as reader:
        assert (await reader.fetch(f"{server.origin}/")).text == TEXT
    async with Scripted(failure, failure, PAGE) as server, fetcher(server) as reader:
        assert not (await reader.fetch(f"{server.origin}/")).ok
        assert len(server.requests) == 2


@pytest.mark.parametrize("status", ["404 Not Found", "403 Forbidden", "500 Error", "429 Too Many"])
async def test_what_stays_is_not_repeated(status: str) -> None:
    """Other answers are final."""
    async with Scripted(response(status=status), PAGE) as server, fetcher(server) as reader:
        outcome = await reader.fetch(f"{server.origin}/")
    assert (outcome.status, len(server.requests)) == (FetchStatus.HTTP_ERROR, 1)


async def test_retry_after_is_waited_out_within_the_deadline() -> None:
    """A time the server names is kept when there is time, by all who ask that host."""
    busy = response(status="503 Busy", headers=[("Retry-After", "1")])
    async with Scripted(busy, PAGE) as server, fetcher(server) as reader:
        started = time.monotonic()
        first = asyncio.create_task(reader.fetch(f"{server.origin}/1"))
        await asyncio.sleep(0.3)
        second, hurried = await asyncio.gather(
            reader.fetch(f"{server.origin}/2"), reader.fetch(f"{server.origin}/3", timeout=0.2)
        )
        assert (await first).ok
        assert second.ok
        assert 0.9 < time.monotonic() - started < 5
    assert (hurried.status, len(server.requests)) == (FetchStatus.HTTP_ERROR, 3)
    long = response(status="503 Busy", headers=[("Retry-After", "3600")])
    async with Scripted(long, PAGE) as server, fetcher(server) as reader:
        outcome = await reader.fetch(f"{server.origin}/")
        again = await reader.fetch(f"{server.origin}/")
    assert (outcome.http_status, again.http_status, len(server.requests)) == (503, None, 1)


async def test_the_same_page_at_the_same_time_is_read_once() -> None:
    """All who ask get the outcome; one who leaves takes it from nobody."""
    async with Slow(0.2) as server, fetcher(server) as reader:
        url = f"{server.origin}/"
        tasks = [asyncio.create_task(reader.fetch(url)) for _ in range(5)]
        await asyncio.sleep(0.05)
        tasks[0].cancel()
        pages = await asyncio.gather(*tasks, return_exceptions=True)
        assert [isinstance(page, FetchOutcome) and page.ok for page in pages] == [
            False,
            *[True] * 4,
        ]
        assert len(server.requests) == 1
        assert (await reader.fetch(url)).ok
        assert len(server.requests) == 2


async def test_the_last_to_leave_ends_the_fetch() -> None:
    """A fetch that nobody waits for any more stops, and the page can be asked for again."""
    async with Slow(0.3) as server, fetcher(server) as reader:
        url = f"{server.origin}/"
        tasks = [asyncio.create_task(reader.fetch(url)) for _ in range(2)]
        await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert (await reader.fetch(url)).ok


async def test_pages_are_kept_when_the_setting_says_so() -> None:
    """The same page by another spelling of its address comes from memory, and says so."""
    async with serving({"/": PAGE, "/?utm_source=x": PAGE}) as server:
        async with fetcher(server, fetch_page_cache_seconds=60) as reader:
            first = await reader.fetch(f"{server.origin}/")
            second = await reader.fetch(f"{server.origin}/?utm_source=x")
            gone = [await reader.fetch(f"{server.origin}/none") for _ in range(2)]
        assert (first.cached, second.cached, second.text) == (False, True, TEXT)
        assert (second.url, second.fetched_at) == (
            f"{server.origin}/?utm_source=x", first.fetched_at,
        )  # fmt: skip
        assert [page.cached for page in gone] == [False, False]
        assert len(server.requests) == 3
        async with fetcher(server) as reader:
            assert not any([(await reader.fetch(f"{server.origin}/")).cached for _ in range(2)])


async def test_a_kept_page_is_not_given_out_once_its_address_is_refused() -> None:
    """The settings of now decide, also about what is in memory."""
    async with serving({"/": PAGE}) as server:
        values = {"fetch_allowed_internal_origins": server.origin, "fetch_page_cache_seconds": 60}
        config = SiteConfig(values, environ={})
        async with PageFetcher(config) as reader:
            assert (await reader.fetch(f"{server.origin}/")).ok
            config.reload({"fetch_page_cache_seconds": 60})
            assert (await reader.fetch(f"{server.origin}/")).status is FetchStatus.BLOCKED


async def test_robots_txt_is_respected() -> None:
    """Asked for once for a site; another host's is its own; an operator's own hosts have none."""
    rules = response("User-agent: *\nDisallow: /private", content_type="text/plain")
    pages = {"/robots.txt": rules, "/private/x": PAGE, "/public": PAGE}
    async with serving(pages) as server:
        net = FakeNetwork({"a.example": [[PUBLIC]], "b.example": [[PUBLIC]]}, {PUBLIC: server.port})
        config = SiteConfig({"fetch_host_interval_ms": 0}, environ={})
        async with PageFetcher(config, resolve=net.resolve, dial=net) as reader:
            urls = [f"http://a.example/{path}" for path in ("private/x", "public", "private/x")]
            found = await asyncio.gather(*(reader.fetch(url) for url in urls))
            asked = [path for path, _ in server.requests]
        assert [page.status for page in found] == [
            FetchStatus.DISALLOWED, FetchStatus.OK, FetchStatus.DISALLOWED,
        ]  # fmt: skip
        assert sorted(asked) == ["/public", "/robots.txt"]
        async with fetcher(server) as reader:
            assert (await reader.fetch(f"{server.origin}/private/x")).ok


@pytest.mark.parametrize("answer", ["404 Not Found", "500 Error", "silent"])
async def test_a_robots_txt_that_cannot_be_had_allows(answer: str) -> None:
    """Missing, failing or slow: the page is read."""

    async def site(path: str, _headers: dict[str, str], writer: asyncio.StreamWriter) -> None:
        if path != "/robots.txt":
            writer.write(PAGE)
        elif answer == "silent":
            await asyncio.sleep(30)
        else:
            writer.write(response(status=answer))

    async with LoopbackServer(site) as server:
        net = FakeNetwork({"a.example": [[PUBLIC]]}, {PUBLIC: server.port})
        async with PageFetcher(SiteConfig(environ={}), resolve=net.resolve, dial=net) as reader:
            assert (await reader.fetch("http://a.example/")).ok
