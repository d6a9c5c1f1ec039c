"""DuckDuckGo's redirect wrappers and advertisements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeflow.search.links import is_duckduckgo_ad, is_web_url, resolve_redirect
from tests.support.engines import wrapped


@pytest.mark.parametrize(
    ("href", "target"),
    [
        ("//duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example%2F&rut=1", "https://a.example/"),
        ("/l/?kh=-1&uddg=https%3A%2F%2Fa.example%2F", "https://a.example/"),
        ("https://html.duckduckgo.com/l/?uddg=https%3A%2F%2Fa.example", "https://a.example"),
        ("https://DuckDuckGo.com./l/?uddg=https%3A%2F%2Fa.example", "https://a.example"),
        # decoded once: what the target itself has encoded stays so
        (
            "/l/?uddg=https%3A%2F%2Fa.example%2Fa%2520b%3Fq%3D1%2526",
            "https://a.example/a%20b?q=1%26",
        ),
        ("/l/?uddg=https://a.example/c++", "https://a.example/c++"),
    ],
)
def test_wrapper_is_replaced_by_its_target(href: str, target: str) -> None:
    """DuckDuckGo's own redirector is resolved, its target decoded exactly once."""
    assert resolve_redirect(href) == target


@pytest.mark.parametrize(
    "href",
    [
        "https://a.example/",
        "https://evil.example/l/?uddg=javascript%3Aalert(1)",
        "https://evilduckduckgo.com/l/?uddg=https%3A%2F%2Fa.example",
        "https://duckduckgo.com.evil.example/l/?uddg=https%3A%2F%2Fa.example",
        "https://duckduckgo.com/?q=uddg=x",
        "https://duckduckgo.com/l/?rut=1",
        "https://duckduckgo.com/l/?uddg=",
        "https://[broken/l/?uddg=x",
        "/l/?uddg=javascript%3Aalert(1)",
        "https://duckduckgo.com/l/?uddg=javascript%3Aalert(1)",
        "",
    ],
)
def test_other_links_are_left_alone(href: str) -> None:
    """A foreign host's `uddg` parameter is not a wrapper, and a script is not a target."""
    assert resolve_redirect(href) == href


@given(st.from_regex(r"https://[a-z]{1,9}\.example/[!-~]{0,40}", fullmatch=True))
def test_wrapping_and_resolving_gives_the_url_back(url: str) -> None:
    """Any URL survives DuckDuckGo's wrapper unchanged."""
    assert resolve_redirect(wrapped(url)) == url


@given(st.text())
def test_no_link_raises(href: str) -> None:
    """Whatever a page links to is judged without an exception."""
    resolve_redirect(href)
    is_duckduckgo_ad(href)
    is_web_url(href)


@pytest.mark.parametrize(
    ("href", "expected"),
    [
        ("https://duckduckgo.com/y.js?ad_domain=x", True),
        ("//duckduckgo.com/y.js?u3=x", True),
        ("/y.js?u3=x", True),
        ("https://shop.example/y.js?ad_domain=x", False),
        ("https://duckduckgo.com/about", False),
    ],
)
def test_advertisement_is_known_by_its_click_counter(href: str, expected: bool) -> None:
    """Only DuckDuckGo's own y.js marks an advertisement."""
    assert is_duckduckgo_ad(href) is expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://a.example/", True),
        ("HTTP://a.example", True),
        ("javascript:alert(1)", False),
        ("file:///etc/passwd", False),
        ("//a.example/", False),
        ("https://", False),
        ("https://[::1", False),
        ("", False),
    ],
)
def test_only_absolute_http_urls_are_web_urls(url: str, expected: bool) -> None:
    """Nothing but http and https with a host can become a hit."""
    assert is_web_url(url) is expected
