"""What is decided about a URL by looking at it."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from citeflow.errors import SSRFBlockedError, URLScrapeError
from citeflow.fetch.addresses import is_public_address
from citeflow.fetch.targets import Origin, Policy, check_url, parse_origins, redirect_target

STRICT = Policy()


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://example.org", Origin("http", "example.org", 80)),
        ("HTTPS://Example.ORG:443/x?y#z", Origin("https", "example.org", 443)),
        ("http://example.org./", Origin("http", "example.org", 80)),
        ("http://bücher.example/", Origin("http", "xn--bcher-kva.example", 80)),
        ("http://foo_bar.example/", Origin("http", "foo_bar.example", 80)),
        ("http://1.1.1.1/", Origin("http", "1.1.1.1", 80)),
        ("http://[2606:4700:4700:0::1111]/", Origin("http", "2606:4700:4700::1111", 80)),
        ("http://1.example/", Origin("http", "1.example", 80)),
    ],
)
def test_ordinary_urls_are_targets(url: str, origin: Origin) -> None:
    """The origin is explicit and in one spelling; nothing is exempt."""
    target = check_url(url, STRICT)
    assert (target.origin, target.exempt) == (origin, False)


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1/", "http://127.0.0.1./", "http://[::1]/", "http://localhost/",
        "http://LOCALHOST./", "http://a.localhost/", "http://localhost.localdomain/",
        "http://169.254.169.254/latest/meta-data/", "http://100.64.0.1/", "http://0.0.0.0/",
        "http://[::ffff:10.0.0.1]/", "http://[::ffff:7f00:1]/", "http://224.0.0.1/",
        "http://255.255.255.255/", "http://[64:ff9b::7f00:1]/", "http://[2002:7f00:1::]/",
        "http://[::7f00:1]/", "http://[fec0::1]/", "http://2130706433/", "http://0x7f000001/",
        "http://127.1/", "http://[::1%25lo]/", "http://0x7f.1/", "http://1.2.3/", "http://0x/",
        "http://example.0x1/", "http://1.1.1.1.1/", "http://example.org:8080/",
        "https://example.org:80/", "http://example.org:443/", "http://example.org:22/",
    ],
)  # fmt: skip
def test_addresses_that_are_not_public_are_refused(url: str) -> None:
    """Literals, unusual IPv4 forms, local names and ports are refused before any look-up."""
    with pytest.raises(SSRFBlockedError):
        check_url(url, STRICT)


@pytest.mark.parametrize(
    "url",
    [
        "", "example.org", "//example.org/", "http://", "http:///path", "file:///etc/passwd",
        "ftp://example.org/", "javascript:alert(1)", "gopher://example.org/", "data:text/html,x",
        "http://user@example.org/", "http://user:password@example.org/",
        "http://example.org\\@127.0.0.1/", "http:\\\\example.org\\", "http://a b.example/",
        "http://127%2e0.0.1/", "http://a..b/", "http://.example.org/",
        "http://[::1", "http://0177.0.0.1/", "http://example.org:0/", "http://example.org:99999/",
        "http://example.org:port/", "http://\uff11\uff12\uff17.0.0.1/", "http://ex\0ample.org/",
        "http://ex\nample.org/", "http://" + "a" * 64 + ".example/", "http://e.org/" + "a" * 8000,
        "http://" + "a." * 130 + "example/",
    ],
)  # fmt: skip
def test_what_is_not_a_plain_http_url_is_refused(url: str) -> None:
    """Other schemes, user names, ambiguous spellings and nonsense are not targets."""
    with pytest.raises(URLScrapeError) as caught:
        check_url(url, STRICT)
    assert not isinstance(caught.value, SSRFBlockedError)


@given(st.text(alphabet=st.sampled_from("http://[]@:\\%.?#127xlocalhost0fé\0\n ")), st.booleans())
def test_any_text_is_a_target_or_an_error(text: str, prefix: bool) -> None:
    """No text makes the check fail in another way, and no literal private address passes."""
    try:
        target = check_url("http://" * prefix + text, STRICT)
    except URLScrapeError:
        return
    host = target.origin.host
    assert target.origin.host == target.url.raw_host.decode().rstrip(".") or ":" in host
    assert not host.replace(".", "").isdigit() or is_public_address(host)


def test_an_allowed_origin_is_exempt_exactly() -> None:
    """Scheme, host and port must all be the allowed ones; the exemption covers nothing else."""
    policy = Policy(parse_origins("http://127.0.0.1:8080, https://intra.example ,http://[::1]:9"))
    for url in ("http://127.0.0.1:8080/x", "https://intra.example:443/", "http://[0::1]:9/"):
        assert check_url(url, policy).exempt
    for url in ("http://127.0.0.1:8081/", "https://127.0.0.1:8080/", "http://127.0.0.1/",
                "http://localhost:8080/", "http://[::ffff:127.0.0.1]:8080/",
                "http://2130706433:8080/"):  # fmt: skip
        with pytest.raises(SSRFBlockedError):
            check_url(url, policy)
    assert not check_url("http://intra.example/", policy).exempt


def test_malformed_origins_are_ignored_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    """An entry that is not an origin never becomes an exemption."""
    parse_origins.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert parse_origins("127.0.0.1:1, http://u@h/, http://h/path, ftp://h, ,") == frozenset()
    assert len(caplog.records) == 4


def test_allow_internal_switches_off_the_address_checks_only() -> None:
    """Local addresses pass; ports, schemes, user names and odd IPv4 forms are still refused."""
    policy = Policy(allow_internal=True)
    for url in ("http://127.0.0.1/", "http://localhost/", "http://[fd00::1]/"):
        assert check_url(url, policy).exempt
    for url in ("http://127.0.0.1:8080/", "file:///x", "http://u@127.0.0.1/", "http://127.1/"):
        with pytest.raises(URLScrapeError):
            check_url(url, policy)


@pytest.mark.parametrize(
    ("location", "leads_to"),
    [
        ("/b?c", "https://e.org/b?c"),
        ("b", "https://e.org/a/b"),
        ("//other.org/x", "https://other.org/x"),
        ("http://other.org/x#y", "https://other.org/x"),
        ("http://other.org:80/x", "https://other.org/x"),
    ],
)
def test_redirects_are_resolved_and_never_leave_https(location: str, leads_to: str) -> None:
    """A relative location is resolved; one that would drop TLS is followed over TLS."""
    current = check_url("https://e.org/a/", STRICT)
    assert str(redirect_target(current, location, STRICT).url) == leads_to


@pytest.mark.parametrize(
    "location",
    ["file:///etc/passwd", "http://127.0.0.1/", "http://e.org:8080/", "//localhost/", "http://[",
     "https://u:p@e.org/", "data:,x", "https://e.org:22/"],
)  # fmt: skip
def test_redirects_are_checked_like_first_addresses(location: str) -> None:
    """What may not be asked for directly may not be reached by a redirect."""
    with pytest.raises(URLScrapeError):
        redirect_target(check_url("https://e.org/", STRICT), location, STRICT)
