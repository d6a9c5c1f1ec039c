"""Reading pages through a real proxy on loopback."""

from __future__ import annotations

import logging
import os
import ssl

import pytest
import trustme

from citeflow.fetch import FetchOutcome, FetchStatus, PageFetcher
from citeflow.fetch import proxy as proxy_module
from citeflow.settings import SiteConfig
from tests.support.loopback import FakeNetwork, listening, response, serving, trust
from tests.support.proxy import LoopbackProxy

PAGE = response("<html><title>T</title><p>A short but real page, with words in it.</p></html>")
TEXT = "A short but real page, with words in it."
PUBLIC, PUBLIC_2, PUBLIC_6 = "93.184.216.34", "93.184.216.35", "2606:4700:4700::1111"


def fetcher(network: FakeNetwork, proxy: LoopbackProxy | str, **values: object) -> PageFetcher:
    where = proxy if isinstance(proxy, str) else f"http://127.0.0.1:{proxy.port}"
    settings = {"fetch_respect_robots": False, "fetch_proxy_url": where, **values}
    return PageFetcher(SiteConfig(settings, environ={}), resolve=network.resolve, dial=network)


@pytest.fixture
def authority(monkeypatch: pytest.MonkeyPatch) -> trustme.CA:
    """An authority that pages' certificates are verified with."""
    authority = trustme.CA()
    trust(monkeypatch, authority)
    return authority


def tls_for(host: str, authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(host).configure_cert(context)
    return context


async def test_https_goes_through_a_tunnel_to_the_vetted_address(authority: trustme.CA) -> None:
    """The proxy is given an address, never a name, and no credential leaves for the site."""
    async with (
        serving({"/": PAGE}, tls=tls_for("a.example", authority)) as site,
        LoopbackProxy({PUBLIC: site.port}, credentials="user:hunter2") as proxy,
    ):
        net = FakeNetwork({"a.example": [[PUBLIC]]}, {})
        url = f"http://user:hunter2@127.0.0.1:{proxy.port}"
        async with fetcher(net, url) as reader:
            outcomes = [await reader.fetch(f"https://a.example/{n}") for n in ("", "?again")]
    assert outcomes[0].text == TEXT
    assert [asked.line for asked in proxy.asked] == [f"CONNECT {PUBLIC}:443 HTTP/1.1"]
    assert proxy.asked[0].headers["host"] == f"{PUBLIC}:443"
    assert b"a.example" in proxy.asked[0].sent  # the server name of the handshake
    assert [headers["host"] for _, headers in site.requests] == ["a.example"] * 2
    assert all("proxy-authorization" not in headers for _, headers in site.requests)
    assert (net.lookups, net.dialled) == (["a.example"], [])


async def test_http_is_asked_for_in_absolute_form_or_through_a_tunnel() -> None:
    """By name without a tunnel (the proxy takes the host from there), by address with one."""
    async with (
        serving({"/x?y": PAGE}) as site,
        LoopbackProxy({"a.example": site.port, PUBLIC: site.port}, credentials="u:p") as proxy,
    ):
        net = FakeNetwork({"a.example": [[PUBLIC]]}, {})
        url = f"http://u:p@127.0.0.1:{proxy.port}"
        async with fetcher(net, url) as reader:
            plain = await reader.fetch("http://a.example/x?y")
        async with fetcher(net, url, fetch_proxy_tunnels_http=True) as reader:
            tunnelled = await reader.fetch("http://a.example/x?y")
    assert (plain.text, tunnelled.text) == (TEXT, TEXT)
    assert [asked.line for asked in proxy.asked] == [
        "GET http://a.example/x?y HTTP/1.1",
        f"CONNECT {PUBLIC}:80 HTTP/1.1",
    ]
    assert all("proxy-authorization" not in headers for _, headers in site.requests)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.1", "::1"])
async def test_a_forbidden_target_is_never_asked_for(scheme: str, address: str) -> None:
    """A private address of a name, or of a name's many, refuses it before the proxy hears of it."""
    async with serving({"/": PAGE}) as secret:
        async with LoopbackProxy({address: secret.port, "a.example": secret.port}) as proxy:
            net = FakeNetwork({"a.example": [[PUBLIC, address]]}, {})
            literal = f"[{address}]" if ":" in address else address
            async with fetcher(net, proxy) as reader:
                for host in ("a.example", literal):
                    outcome = await reader.fetch(f"{scheme}://{host}/")
                    assert outcome.status is FetchStatus.BLOCKED
        assert (proxy.connections, secret.connections) == (0, 0)


async def test_a_redirect_is_vetted_again(authority: trustme.CA) -> None:
    """From a page read through the proxy to an inner name or address: refused, not asked for."""
    for location in ("http://inner.example/", "http://169.254.169.254/", "http://127.0.0.1/"):
        moved = response(status="302 Found", headers=[("Location", location)])
        async with (
            serving({"/": moved}) as site,
            LoopbackProxy({"a.example": site.port, "inner.example": site.port}) as proxy,
        ):
            net = FakeNetwork({"a.example": [[PUBLIC]], "inner.example": [["10.0.0.1"]]}, {})
            async with fetcher(net, proxy) as reader:
                outcome = await reader.fetch("http://a.example/")
        assert outcome.status is FetchStatus.BLOCKED
        assert [asked.line for asked in proxy.asked] == ["GET http://a.example/ HTTP/1.1"]


async def test_the_next_address_is_tried_when_the_proxy_cannot_reach_one() -> None:
    """A proxy without IPv6, say."""
    async with (
        serving({"/": PAGE}) as site,
        LoopbackProxy({PUBLIC: site.port}) as proxy,
    ):
        net = FakeNetwork({"a.example": [[PUBLIC_6, PUBLIC]], "b.example": [[PUBLIC_6]]}, {})
        async with fetcher(net, proxy, fetch_proxy_tunnels_http=True) as reader:
            fine = await reader.fetch("http://a.example/")
            failed = await reader.fetch("http://b.example/")
    assert fine.text == TEXT
    assert (failed.status, "status 502" in failed.detail) == (FetchStatus.PROXY_ERROR, True)
    assert proxy.asked[0].line == f"CONNECT [{PUBLIC_6}]:80 HTTP/1.1"


@pytest.mark.parametrize(
    ("answer", "detail"),
    [
        (b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n", "status 403"),
        (b"HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n", "other credentials"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "broke the HTTP protocol"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"x" * 200_000 + b"\r\n\r\n", "broke the HTTP protocol"),
    ],
)
async def test_a_proxy_that_refuses_is_named(answer: bytes, detail: str) -> None:
    """Its status, or that it is none."""
    async with LoopbackProxy({}, answer=answer) as proxy:
        net = FakeNetwork({"a.example": [[PUBLIC, PUBLIC_2]]}, {})
        async with fetcher(net, proxy) as reader:
            outcome = await reader.fetch("https://a.example/")
    assert (outcome.status, detail in outcome.detail) == (FetchStatus.PROXY_ERROR, True)
    assert len(proxy.asked) == 1


async def test_a_proxy_that_is_not_there_does_not_answer_or_cannot_be_read_is_named() -> None:
    """Never is the page read without it."""
    async with serving({"/": PAGE}) as site, listening() as (closing, _):
        net = FakeNetwork({"a.example": [[PUBLIC]]}, {PUBLIC: site.port})
        for setting in ("http://127.0.0.1:9", f"http://127.0.0.1:{closing}", "squid.example:3128"):
            async with fetcher(net, setting) as reader:
                for url in ("http://a.example/", "https://a.example/"):
                    outcome = await reader.fetch(url)
                    named = (FetchStatus.PROXY_ERROR, FetchStatus.CONNECT_ERROR)
                    assert outcome.status in named
        assert (site.connections, net.dialled) == (0, [])


async def test_a_proxy_that_asks_for_credentials_is_named_for_http_too() -> None:
    """Without a tunnel its 407 is the answer to the page's request."""
    async with LoopbackProxy({}, credentials="a:b") as proxy:
        net = FakeNetwork({"a.example": [[PUBLIC]]}, {})
        async with fetcher(net, proxy) as reader:
            outcome = await reader.fetch("http://a.example/")
    assert (outcome.status, outcome.http_status) == (FetchStatus.PROXY_ERROR, None)


async def test_a_silent_proxy_costs_no_more_than_the_deadline() -> None:
    """It counts against the fetch's time like any server."""
    async with LoopbackProxy({}, answer=b" ") as proxy:
        net = FakeNetwork({"a.example": [[PUBLIC]]}, {})
        async with fetcher(net, proxy) as reader:
            outcome = await reader.fetch("https://a.example/", timeout=0.4)
    assert outcome.status in (FetchStatus.TIMEOUT, FetchStatus.PROXY_ERROR)


async def test_allowed_internal_origins_are_reached_without_the_proxy() -> None:
    """They are the operator's own; the proxy is the way out."""
    async with serving({"/": PAGE}) as site, LoopbackProxy({}) as proxy:
        settings = {"fetch_proxy_url": f"http://127.0.0.1:{proxy.port}"}
        settings |= {"fetch_allowed_internal_origins": site.origin, "fetch_respect_robots": "no"}
        async with PageFetcher(SiteConfig(settings, environ={})) as reader:
            assert (await reader.fetch(f"{site.origin}/")).text == TEXT
        assert proxy.connections == 0


async def test_ambient_proxies_do_not_change_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither for pages nor for the way to the configured proxy."""
    async with (
        serving({"/": PAGE}) as site,
        LoopbackProxy({"a.example": site.port}) as proxy,
        listening() as (other, seen),
    ):
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
            monkeypatch.setitem(os.environ, name, f"http://127.0.0.1:{other}")
        net = FakeNetwork({"a.example": [[PUBLIC]]}, {})
        async with fetcher(net, proxy) as reader:
            assert (await reader.fetch("http://a.example/")).text == TEXT
        assert seen == []


async def test_a_connection_is_not_kept_across_a_change_of_proxy() -> None:
    """Settings are read at each call: the next page goes by the new proxy, or by none."""
    async with (
        serving({"/": PAGE}) as site,
        LoopbackProxy({PUBLIC: site.port}) as one,
        LoopbackProxy({PUBLIC: site.port}) as two,
    ):
        net = FakeNetwork({"a.example": [[PUBLIC]]}, {PUBLIC: site.port})
        settings: dict[str, object] = {"fetch_respect_robots": "no", "fetch_proxy_tunnels_http": 1}
        config = SiteConfig(settings, environ={})
        async with PageFetcher(config, resolve=net.resolve, dial=net) as reader:
            for url in (f"http://127.0.0.1:{one.port}", f"http://127.0.0.1:{two.port}", ""):
                config.reload({**settings, "fetch_proxy_url": url})
                assert (await reader.fetch("http://a.example/")).text == TEXT
    assert (one.connections, two.connections, net.dialled) == (1, 1, [PUBLIC])


async def test_a_proxy_may_speak_tls_itself(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its certificate is verified; the tunnel's TLS runs inside."""
    trusting = ssl.create_default_context()
    authority.configure_trust(trusting)
    monkeypatch.setattr(proxy_module, "_proxy_ssl_context", lambda: trusting)
    tls = tls_for("127.0.0.1", authority)
    async with (
        serving({"/": PAGE}, tls=tls_for("a.example", authority)) as site,
        LoopbackProxy({PUBLIC: site.port}, tls=tls) as proxy,
        LoopbackProxy({PUBLIC: site.port}, tls=tls_for("127.0.0.1", trustme.CA())) as stranger,
    ):
        net = FakeNetwork({"a.example": [[PUBLIC]]}, {})
        async with fetcher(net, f"https://127.0.0.1:{proxy.port}") as reader:
            assert (await reader.fetch("https://a.example/")).text == TEXT
        async with fetcher(net, f"https://127.0.0.1:{stranger.port}") as reader:
            refused = await reader.fetch("https://a.example/")
    assert refused.status is FetchStatus.PROXY_ERROR
    assert stranger.asked == []


async def test_credentials_are_nowhere_to_be_read(caplog: pytest.LogCaptureFixture) -> None:
    """Not in logs of any level, not in outcomes, of a working, a refusing and a broken proxy."""
    caplog.set_level(logging.DEBUG)
    outcomes: list[FetchOutcome] = []
    async with (
        serving({"/": PAGE}) as site,
        LoopbackProxy({"a.example": site.port}, credentials="user:hunter2") as fine,
        LoopbackProxy({}, answer=b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n") as refusing,
    ):
        net = FakeNetwork({"a.example": [[PUBLIC]]}, {})
        for where in (f"127.0.0.1:{fine.port}", f"127.0.0.1:{refusing.port}", "127.0.0.1:9", "a/b"):
            async with fetcher(net, f"http://user:hunter2@{where}") as reader:
                outcomes += [await reader.fetch(f"{s}://a.example/") for s in ("http", "https")]
    written = f"{caplog.text}{outcomes!r}"
    assert outcomes[0].ok
    assert "hunter2" not in written
    assert fine.asked[0].headers["proxy-authorization"].removeprefix("Basic ") not in written
