"""What a fetch may reach, on real connections."""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from unittest import mock

import pytest
import trustme

from citeflow.fetch import FetchStatus, PageFetcher
from citeflow.fetch import network as network_module
from citeflow.fetch.fetcher import PageFetcher as Fetcher
from citeflow.settings import SiteConfig
from tests.support.loopback import FakeNetwork, listening, response, serving, trust

PAGE = response("<html><title>T</title><p>A short but real page, with words in it.</p></html>")
TEXT = "A short but real page, with words in it."
PUBLIC, PUBLIC_2, PUBLIC_6 = "93.184.216.34", "93.184.216.35", "2606:4700:4700::1111"


def fetcher(network: FakeNetwork | None = None, **values: object) -> Fetcher:
    config = SiteConfig({"fetch_respect_robots": False, **values}, environ={})
    if network is None:
        return PageFetcher(config)
    return PageFetcher(config, resolve=network.resolve, dial=network)


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "127.1", "2130706433", "0x7f.1", "0.0.0.0"],
)
async def test_a_local_server_sees_no_connection(host: str) -> None:
    """Every spelling of the local machine is refused without a connection, on any port."""
    async with serving({"/": PAGE}) as server, fetcher() as reader:
        for url in (f"http://{host}:{server.port}/", f"http://{host}/"):
            assert (await reader.fetch(url)).status is FetchStatus.BLOCKED
        assert server.connections == 0


async def test_a_public_name_is_read_through_its_vetted_address() -> None:
    """The host is resolved once, connected to by address, and named in the Host header."""
    async with serving({"/": PAGE}) as server:
        net = FakeNetwork({"site.example": [[PUBLIC]]}, {PUBLIC: server.port})
        async with fetcher(net) as reader:
            outcome = await reader.fetch("http://site.example/")
        assert (outcome.status, outcome.text) == (FetchStatus.OK, TEXT)
        assert server.requests[0][1]["host"] == "site.example"
    assert (net.lookups, net.dialled) == (["site.example"], [PUBLIC])


@pytest.mark.parametrize("private", ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "fe80::1"])
@pytest.mark.parametrize("first", [True, False])
async def test_one_refused_address_refuses_the_name(private: str, first: bool) -> None:
    """A name with a public and a private address is not connected to at all."""
    async with serving({"/": PAGE}) as server:
        addresses = [private, PUBLIC] if first else [PUBLIC, private]
        net = FakeNetwork(
            {"mixed.example": [addresses]}, {PUBLIC: server.port, private: server.port}
        )
        async with fetcher(net) as reader:
            outcome = await reader.fetch("http://mixed.example/")
        assert (outcome.status, net.dialled, server.connections) == (FetchStatus.BLOCKED, [], 0)


async def test_an_address_beyond_those_tried_still_refuses_the_name() -> None:
    """All addresses are vetted, also the ones that would never be tried."""
    addresses = [f"93.184.216.{n}" for n in range(20)] + ["127.0.0.1"]
    net = FakeNetwork({"many.example": [addresses]}, {})
    async with fetcher(net) as reader:
        assert (await reader.fetch("http://many.example/")).status is FetchStatus.BLOCKED
    assert net.dialled == []


async def test_rebinding_never_reaches_the_local_server() -> None:
    """A resolver that says public first and local next: first the public page, then refused."""
    secret = serving({"/": response("<p>the secret of the local server, in words</p>")})
    async with serving({"/": PAGE}) as public, secret:
        net = FakeNetwork(
            {"rebind.example": [[PUBLIC], ["127.0.0.1"]]},
            {PUBLIC: public.port, "127.0.0.1": secret.port},
        )
        async with fetcher(net) as reader:
            first = await reader.fetch("http://rebind.example/")
        async with fetcher(net) as reader:
            second = await reader.fetch("http://rebind.example/")
        assert (first.text, second.status) == (TEXT, FetchStatus.BLOCKED)
        assert (secret.connections, net.dialled) == (0, [PUBLIC])


async def test_a_connection_to_another_peer_is_refused() -> None:
    """A connection that turns out to end elsewhere is closed before anything is sent."""
    async with serving({"/": PAGE}) as server:
        net = FakeNetwork(
            {"a.example": [[PUBLIC]]}, {PUBLIC: server.port}, peers={PUBLIC: "127.0.0.1"}
        )
        async with fetcher(net) as reader:
            outcome = await reader.fetch("http://a.example/")
        assert (outcome.status, server.requests) == (FetchStatus.BLOCKED, [])


async def test_a_second_address_is_tried_when_the_first_does_not_answer() -> None:
    """An address that refuses leaves the next one its chance."""
    async with serving({"/": PAGE}) as server:
        net = FakeNetwork({"a.example": [[PUBLIC_6, PUBLIC]]}, {PUBLIC: server.port})
        async with fetcher(net) as reader:
            assert (await reader.fetch("http://a.example/")).ok
    assert net.dialled == [PUBLIC_6, PUBLIC]


async def test_names_without_an_address_and_servers_without_an_answer() -> None:
    """No address and no connection are told apart."""
    net = FakeNetwork({"dead.example": [[PUBLIC]], "void.example": [[]]}, {})
    async with fetcher(net) as reader:
        assert (await reader.fetch("http://none.example/")).status is FetchStatus.DNS_ERROR
        assert (await reader.fetch("http://void.example/")).status is FetchStatus.DNS_ERROR
        assert (await reader.fetch("http://dead.example/")).status is FetchStatus.CONNECT_ERROR


@pytest.mark.parametrize(
    ("location", "status"),
    [
        ("http://127.0.0.1/", FetchStatus.BLOCKED),
        ("http://127.0.0.1:{port}/", FetchStatus.BLOCKED),
        ("http://localhost:{port}/", FetchStatus.BLOCKED),
        ("http://private.example/", FetchStatus.BLOCKED),
        ("http://2130706433/", FetchStatus.BLOCKED),
        ("file:///etc/passwd", FetchStatus.BAD_URL),
        ("gopher://127.0.0.1:{port}/", FetchStatus.BAD_URL),
        ("http://user:pass@a.example/", FetchStatus.BAD_URL),
        ("http://[bad", FetchStatus.BAD_URL),
    ],
)
async def test_redirects_do_not_lead_inside(location: str, status: FetchStatus) -> None:
    """A redirect is refused where its target would be, without a connection to it."""
    async with serving({"/": PAGE}) as secret:
        headers = [("Location", location.format(port=secret.port))]
        async with serving({"/": response(status="302 Found", headers=headers)}) as server:
            net = FakeNetwork(
                {"a.example": [[PUBLIC]], "private.example": [["10.0.0.1"]]},
                {PUBLIC: server.port, "127.0.0.1": secret.port, "10.0.0.1": secret.port},
            )
            async with fetcher(net) as reader:
                outcome = await reader.fetch("http://a.example/")
        assert outcome.status is status
        assert (secret.connections, net.dialled) == (0, [PUBLIC])


async def test_five_redirects_are_followed_and_a_sixth_is_not() -> None:
    """Six requests at most; the final address is reported."""

    def hop(n: int) -> bytes:
        return response(status="301 Moved", headers=[("Location", f"/{n}")])

    async with serving({**{f"/{n}": hop(n + 1) for n in range(6)}, "/6": PAGE}) as server:
        net = FakeNetwork({"a.example": [[PUBLIC]]}, {PUBLIC: server.port})
        async with fetcher(net) as reader:
            fine = await reader.fetch("http://a.example/1")
            too_many = await reader.fetch("http://a.example/0")
    assert (fine.status, fine.final_url) == (FetchStatus.OK, "http://a.example/6")
    assert too_many.status is FetchStatus.TOO_MANY_REDIRECTS
    assert len(server.requests) == 12


async def test_an_allowed_origin_is_read_and_nothing_beside_it() -> None:
    """The exemption covers one scheme, host and port: not a redirect to another port."""
    async with serving({"/": PAGE}) as other:
        to_other = response(status="302 Found", headers=[("Location", f"{other.origin}/")])
        pages = {"/": PAGE, "/other": to_other}
        async with serving(pages) as server:
            reader = fetcher(fetch_allowed_internal_origins=server.origin)
            async with reader:
                fine = await reader.fetch(f"{server.origin}/")
                moved = await reader.fetch(f"{server.origin}/other")
                direct = await reader.fetch(f"{other.origin}/")
                name = await reader.fetch(f"http://localhost:{server.port}/")
        assert (fine.status, fine.text) == (FetchStatus.OK, TEXT)
        assert [o.status for o in (moved, direct, name)] == [FetchStatus.BLOCKED] * 3
        assert other.connections == 0


async def test_a_connection_of_an_exempt_origin_is_not_reused_without_the_exemption() -> None:
    """Settings are read at each call: once the exemption is gone the page is refused."""
    async with serving({"/": PAGE}) as server:
        config = SiteConfig({"fetch_allowed_internal_origins": server.origin}, environ={})
        async with PageFetcher(config) as reader:
            assert (await reader.fetch(f"{server.origin}/")).ok
            config.reload({})
            assert (await reader.fetch(f"{server.origin}/")).status is FetchStatus.BLOCKED
        assert server.connections == 1


async def test_internal_addresses_can_be_allowed_as_a_whole() -> None:
    """url_scraper_allow_internal_ips lifts the address checks; ports and schemes stay."""
    async with serving({"/": PAGE}) as server:
        net = FakeNetwork({"intra.example": [["10.0.0.1"]]}, {"10.0.0.1": server.port})
        async with fetcher(net, url_scraper_allow_internal_ips=True) as reader:
            assert (await reader.fetch("http://intra.example/")).ok
            assert (await reader.fetch("http://10.0.0.1/")).ok
            ports = await reader.fetch("http://intra.example:8080/")
            assert ports.status is FetchStatus.BLOCKED
            assert (await reader.fetch("file:///x")).status is FetchStatus.BAD_URL


async def test_ambient_proxies_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxy variables of the environment do not move the connection past the guard."""
    async with serving({"/": PAGE}) as server, listening() as (proxy_port, seen):
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setitem(os.environ, name, f"http://127.0.0.1:{proxy_port}")
        net = FakeNetwork({"a.example": [[PUBLIC]]}, {PUBLIC: server.port})
        async with fetcher(net) as reader:
            assert (await reader.fetch("http://a.example/")).ok
        assert seen == []


def tls_for(host: str, authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(context)
    return context


async def test_certificates_are_verified_for_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate for the URL's host is accepted; for another host or by a stranger it is not."""
    ours, stranger = trustme.CA(), trustme.CA()
    trust(monkeypatch, ours)
    async with (
        serving({"/": PAGE}, tls=tls_for("good.example", ours)) as good,
        serving({"/": PAGE}, tls=tls_for("good.example", stranger)) as bad,
    ):
        net = FakeNetwork(
            {"good.example": [[PUBLIC]], "other.example": [[PUBLIC]], "bad.example": [[PUBLIC_2]]},
            {PUBLIC: good.port, PUBLIC_2: bad.port},
        )
        async with fetcher(net) as reader:
            outcomes = [
                await reader.fetch(f"https://{name}.example/") for name in ("good", "other", "bad")
            ]
    assert [outcome.status for outcome in outcomes] == [
        FetchStatus.OK,
        FetchStatus.TLS_ERROR,
        FetchStatus.TLS_ERROR,
    ]
    assert (good.requests[0][1]["host"], len(good.requests)) == ("good.example", 1)
    assert bad.requests == []


async def test_https_is_kept_through_redirects(monkeypatch: pytest.MonkeyPatch) -> None:
    """A redirect from https to http is followed over https, never in the clear."""
    ours = trustme.CA()
    trust(monkeypatch, ours)
    pages = {
        "/": response(status="301 Moved", headers=[("Location", "http://a.example/page")]),
        "/page": PAGE,
    }
    async with serving(pages, tls=tls_for("a.example", ours)) as server:
        net = FakeNetwork({"a.example": [[PUBLIC]]}, {PUBLIC: server.port})
        async with fetcher(net) as reader:
            outcome = await reader.fetch("https://a.example/")
    assert (outcome.status, outcome.final_url) == (FetchStatus.OK, "https://a.example/page")


async def test_tls_names_the_host_not_the_address() -> None:
    """The server name of the handshake is the URL's host; a broken handshake is an outcome."""
    async with listening() as (port, seen):
        net = FakeNetwork({"secure.example": [[PUBLIC]]}, {PUBLIC: port})
        async with fetcher(net) as reader:
            outcome = await reader.fetch("https://secure.example/")
    assert outcome.status in (FetchStatus.TLS_ERROR, FetchStatus.CONNECT_ERROR)
    assert b"secure.example" in seen[0]
    assert PUBLIC.encode() not in seen[0]


async def test_an_answer_that_is_not_tls_is_a_tls_error() -> None:
    """Plain text where a handshake should be is named as what it is."""
    async with serving({}) as server:
        net = FakeNetwork({"a.example": [[PUBLIC]]}, {PUBLIC: server.port})

        async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(100)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            writer.close()

        listener = await asyncio.start_server(plain, "127.0.0.1", 0)
        net._routes[PUBLIC] = listener.sockets[0].getsockname()[1]
        async with listener, fetcher(net) as reader:
            outcome = await reader.fetch("https://a.example/")
    assert outcome.status is FetchStatus.TLS_ERROR


async def test_slow_lookups_stall_neither_the_loop_nor_other_fetches() -> None:
    """While fifty names are not answered for, another page is read and the loop goes on."""
    release, all_asked = threading.Event(), asyncio.Event()
    asked: list[str] = []
    loop, lookup = asyncio.get_running_loop(), network_module.socket.getaddrinfo

    def slow(host: str, *args: object, **kwargs: object) -> object:
        if not host.endswith(".example"):
            return lookup(host, *args, **kwargs)  # type: ignore[arg-type]
        asked.append(host)
        if len(asked) > 50:
            loop.call_soon_threadsafe(all_asked.set)
        release.wait(60)
        return []

    async with serving({"/": PAGE}) as server:
        with mock.patch.object(network_module.socket, "getaddrinfo", slow):
            async with fetcher(fetch_allowed_internal_origins=server.origin) as reader:
                urls = [f"http://slow{n}.example/" for n in range(50)]
                waiting = [asyncio.create_task(reader.fetch(u, timeout=60)) for u in urls]
                impatient = await reader.fetch("http://slow.example/", timeout=0.3)
                await all_asked.wait()
                other = await reader.fetch(f"{server.origin}/")
                still_waiting = [not task.done() for task in waiting]
                release.set()
                outcomes = await asyncio.gather(*waiting)
    assert impatient.status is FetchStatus.TIMEOUT
    assert other.text == TEXT
    assert all(still_waiting)
    assert {outcome.status for outcome in outcomes} == {FetchStatus.DNS_ERROR}
