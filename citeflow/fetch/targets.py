"""From the text of a URL to a target that may be asked for, or the reason why not.

Nothing here touches the network: it decides what can be decided by looking. What a host name
resolves to is vetted where the connection is made (`citeflow.fetch.network`).
"""

from __future__ import annotations

import functools
import ipaddress
import logging
import re
from dataclasses import dataclass

import httpx

from citeflow.errors import SSRFBlockedError, URLScrapeError
from citeflow.fetch.addresses import is_public_address

__all__ = ["Origin", "Policy", "Target", "check_url", "parse_origins", "redirect_target"]

logger = logging.getLogger(__name__)

_DEFAULT_PORTS = {"http": 80, "https": 443}

# Longer ones are traps or payloads; the common servers refuse a request line above 8 kB.
_MAX_URL_CHARS = 8000
# RFC 1035, 2.3.4.
_MAX_HOST_CHARS = 253

_HOST_NAME = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?\Z")
# A last label that is a number makes resolvers read the whole name as an IPv4 address, in
# decimal, octal, hexadecimal or with parts left out (WHATWG URL, "ends in a number").
_ENDS_IN_NUMBER = re.compile(r"(?:.*\.)?(?:[0-9]+|0x[0-9a-f]*)\Z")
_LOCAL_NAMES = frozenset(
    {
        "localhost",
        "localhost.localdomain",
        "localhost4",
        "localhost6",
        "ip6-localhost",
        "ip6-loopback",
    }
)


@dataclass(frozen=True, slots=True)
class Origin:
    """Scheme, host and port, all explicit."""

    scheme: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Policy:
    """What the operator allows beyond the public web.

    `allowed_origins` are exempt from the address and port checks, each exactly as given.
    `allow_internal` switches off the address checks, and only those, for everything.
    """

    allowed_origins: frozenset[Origin] = frozenset()
    allow_internal: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """A URL that may be asked for. `exempt`: the addresses of its host are not vetted. `listed`:
    its origin is one of the allowed ones, which are reached without a proxy."""

    url: httpx.URL
    origin: Origin
    exempt: bool
    listed: bool = False


@functools.lru_cache(maxsize=64)  # so that a malformed entry warns once, not at each fetch
def parse_origins(setting: str) -> frozenset[Origin]:
    """The origins of a comma-separated setting; entries that are not one are warned about."""
    origins = set()
    for entry in filter(None, (part.strip() for part in setting.split(","))):
        try:
            url = _parse(entry)
            if url.path not in ("", "/") or url.query:
                raise URLScrapeError("an origin has no path")
            origins.add(_origin(url))
        except URLScrapeError as exc:
            logger.warning("fetch_allowed_internal_origins: entry ignored: %s", exc)
    return frozenset(origins)


def check_url(url: str, policy: Policy) -> Target:
    """The target that `url` names.

    Raises `URLScrapeError` when it is not a plain http or https URL with a host, and its subclass
    `SSRFBlockedError` when it may not be asked for.
    """
    return _check(_parse(url), policy)


def redirect_target(current: Target, location: str, policy: Policy) -> Target:
    """The target a redirect from `current` leads to, checked like a first one.

    A redirect from https to http is followed over https: an answer that was protected on the way
    is never exchanged for one that is not. Raises as `check_url` does.
    """
    try:
        url = current.url.join(location)
    except (httpx.InvalidURL, ValueError) as exc:
        raise URLScrapeError("the redirect has no valid location") from exc
    if current.origin.scheme == "https" and url.scheme == "http":
        if url.port not in (None, 80):
            raise SSRFBlockedError("the redirect leads from https to http on its own port")
        url = url.copy_with(scheme="https", port=None)
    return _check(_parse(str(url)), policy)


def _parse(text: str) -> httpx.URL:
    if len(text) > _MAX_URL_CHARS:
        raise URLScrapeError("the URL is too long")
    if "\\" in text.partition("?")[0]:
        # Some parsers read it as "/", others as part of the host.
        raise URLScrapeError("the URL holds a backslash")
    try:
        url = httpx.URL(text.strip())
    except (httpx.InvalidURL, ValueError, TypeError) as exc:
        raise URLScrapeError("the URL cannot be parsed") from exc
    if url.scheme not in _DEFAULT_PORTS:
        raise URLScrapeError("only http and https URLs are read")
    if url.userinfo:
        raise URLScrapeError("a URL with a user name or password is not read")
    return url.copy_with(fragment=None) if "#" in str(url) else url


def _origin(url: httpx.URL) -> Origin:
    host = url.raw_host.decode("ascii", "replace").lower()
    if ":" in host:
        try:
            host = ipaddress.IPv6Address(host).compressed
        except ValueError as exc:
            raise URLScrapeError("the host is not a valid IPv6 address") from exc
    elif len(host) > _MAX_HOST_CHARS or not _HOST_NAME.match(host):
        raise URLScrapeError("the URL has no valid host name")
    port = _DEFAULT_PORTS[url.scheme] if url.port is None else url.port
    if not 0 < port < 65536:
        raise URLScrapeError("the port is not a valid one")
    return Origin(url.scheme, host.rstrip("."), port)


def _check(url: httpx.URL, policy: Policy) -> Target:
    origin = _origin(url)
    if origin in policy.allowed_origins:
        return Target(url, origin, exempt=True, listed=True)
    if origin.port != _DEFAULT_PORTS[origin.scheme]:
        raise SSRFBlockedError(f"port {origin.port} is not read")
    address = _literal(origin.host)
    if not policy.allow_internal:
        if origin.host in _LOCAL_NAMES or origin.host.endswith(".localhost"):
            raise SSRFBlockedError("the host name is a local one")
        if address is not None and not is_public_address(address):
            raise SSRFBlockedError("the address is not a public one")
    return Target(url, origin, exempt=policy.allow_internal)


def _literal(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """The host as an address, None if it is a name."""
    if ":" in host:
        return ipaddress.IPv6Address(host)
    if not _ENDS_IN_NUMBER.match(host):
        return None
    try:
        return ipaddress.IPv4Address(host)
    except ValueError as exc:
        raise SSRFBlockedError("the host is an IPv4 address in an unusual form") from exc
