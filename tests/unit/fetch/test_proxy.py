"""The setting that names a proxy for pages."""

from __future__ import annotations

import pytest

from citeflow.fetch.proxy import Proxy, ProxyError, parse_proxy


@pytest.mark.parametrize(
    ("setting", "proxy"),
    [
        ("", None),
        ("  ", None),
        ("http://proxy.example:3128", Proxy("http", "proxy.example", 3128)),
        ("http://proxy.example/", Proxy("http", "proxy.example", 80)),
        ("https://proxy.example", Proxy("https", "proxy.example", 443)),
        ("http://[::1]:3128", Proxy("http", "::1", 3128)),
        (
            "http://us%40er:p%3Aw@proxy.example:1",
            Proxy("http", "proxy.example", 1, "Basic dXNAZXI6cDp3"),
        ),
    ],
)
def test_a_setting_is_a_proxy_or_none(setting: str, proxy: Proxy | None) -> None:
    """Scheme, host, port, and credentials with their escapes undone."""
    assert parse_proxy(setting) == proxy


@pytest.mark.parametrize(
    "setting",
    [
        "proxy.example:3128",
        "socks5://proxy.example",
        "http://",
        "http://user:hunter2@proxy.example:port",
        "http://user:hunter2@proxy.example/path",
        "http://user:hunter2@proxy.example/?q",
    ],
)
def test_a_setting_that_cannot_be_read_is_an_error_without_credentials(setting: str) -> None:
    """It must not mean "no proxy"; and neither the error nor its cause holds the password."""
    with pytest.raises(ProxyError) as raised:
        parse_proxy(setting)
    assert "hunter2" not in repr(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


def test_a_proxy_shows_no_credentials() -> None:
    """Its representation, as a log or a traceback would print it."""
    proxy = parse_proxy("http://user:hunter2@proxy.example")
    assert proxy is not None
    assert proxy.authorization
    assert proxy.authorization not in repr(proxy)


def test_https_goes_through_a_tunnel_and_http_if_wanted() -> None:
    """By default http is asked for in absolute form."""
    plain = parse_proxy("http://proxy.example")
    tunnels = parse_proxy("http://proxy.example", tunnel_http=True)
    assert plain is not None
    assert tunnels is not None
    assert [plain.tunnels("https"), plain.tunnels("http")] == [True, False]
    assert [tunnels.tunnels("https"), tunnels.tunnels("http")] == [True, True]
