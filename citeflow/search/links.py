"""The links of a DuckDuckGo result page: its redirect wrappers, its advertisements, real ones."""

from __future__ import annotations

from urllib.parse import SplitResult, unquote, urljoin, urlsplit

__all__ = [
    "is_duckduckgo_ad",
    "is_duckduckgo_host",
    "is_result_url",
    "is_web_url",
    "resolve_redirect",
]

_PAGE_URL = "https://duckduckgo.com/html/"


def resolve_redirect(href: str) -> str:
    """Where a link of a DuckDuckGo page leads.

    A link to DuckDuckGo's own redirector (`/l/?uddg=...`, relative or absolute) is replaced by
    its target, percent-decoded once, if that is an http or https URL. Every other link is returned
    unchanged, also one on a foreign host that carries a `uddg` parameter.
    """
    parts = _split(href)
    if parts is None or not _is_redirector(parts):
        return href
    for field in parts.query.split("&"):
        name, _, value = field.partition("=")
        if name == "uddg" and value:
            # Not parse_qs: it would turn a literal "+" of the target into a space.
            target = unquote(value)
            return target if is_web_url(target) else href
    return href


def is_result_url(url: str) -> bool:
    """True for an http or https URL that is neither an advertisement nor a redirector's."""
    parts = _split(url)
    return (
        parts is not None
        and is_web_url(url)
        and not _is_redirector(parts)
        and not is_duckduckgo_ad(url)
    )


def is_duckduckgo_ad(href: str) -> bool:
    """True for a link that counts an advertisement's click (`duckduckgo.com/y.js?...`)."""
    parts = _split(href)
    return parts is not None and _is_duckduckgo(parts) and parts.path == "/y.js"


def is_web_url(url: str) -> bool:
    """True for an absolute http or https URL with a host."""
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        return False


def _split(href: str) -> SplitResult | None:
    try:
        return urlsplit(urljoin(_PAGE_URL, href.strip()))
    except ValueError:
        return None


def is_duckduckgo_host(host: str) -> bool:
    """True for duckduckgo.com and its subdomains."""
    name = host.lower().rstrip(".")
    return name == "duckduckgo.com" or name.endswith(".duckduckgo.com")


def _is_duckduckgo(parts: SplitResult) -> bool:
    return is_duckduckgo_host(parts.hostname or "")


def _is_redirector(parts: SplitResult) -> bool:
    return _is_duckduckgo(parts) and parts.path.startswith("/l/")
