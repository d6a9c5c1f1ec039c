"""Page reading as plain functions, the ones that wait with an asynchronous twin.

    from citeflow import fetch_text
    print(fetch_text("https://example.org/page"))

They never raise: what went wrong gives `""`, `None` or False. `fetch_outcome` says what it was.
Only https is read, and the origins in `fetch_allowed_internal_origins`.
"""

from __future__ import annotations

import re

from citeflow.errors import URLScrapeError
from citeflow.fetch.addresses import is_public_address
from citeflow.fetch.fetcher import PageFetcher
from citeflow.fetch.limits import PageLimits
from citeflow.fetch.network import NameNotFoundError, resolve_host
from citeflow.fetch.outcome import FetchOutcome, FetchStatus
from citeflow.fetch.targets import Policy, check_url
from citeflow.running import run_to_end
from citeflow.settings import SiteConfig

__all__ = [
    "afetch_outcome",
    "afetch_text",
    "afetch_text_and_date",
    "ais_public_https",
    "extract_published_date",
    "fetch_outcome",
    "fetch_text",
    "fetch_text_and_date",
    "is_public_https",
    "strip_html_to_text",
]

# Where a tag ends a word. Inline elements do not: "bo<b>ld</b>" is one word.
_BLOCK_TAG = re.compile(
    r"</?(?:address|article|aside|blockquote|br|center|dd|details|div|dl|dt|fieldset|figcaption"
    r"|figure|footer|form|h[1-6]|header|hr|li|main|nav|ol|option|p|pre|section|summary|table|tbody"
    r"|td|tfoot|th|thead|title|tr|ul)\b",
    re.IGNORECASE,
)
_DROPPED = "nav, footer, script, style, noscript, template, iframe, svg, textarea"


async def afetch_outcome(
    url: str,
    max_bytes: int = 400_000,
    timeout_s: float = 8.0,
    max_chars: int = 4000,
    max_pdf_bytes: int = 12_000_000,
    pdf_timeout_s: float = 60.0,
) -> FetchOutcome:
    """Read a page, and say what became of it.

    At most `max_bytes` of it, as sent and again after decompression (`max_pdf_bytes` for a PDF),
    within `timeout_s` seconds from the name look-up to the last byte (`pdf_timeout_s` once it
    turns out to be a PDF), cut at `max_chars` characters.
    """
    if not isinstance(url, str):
        return FetchOutcome(FetchStatus.BAD_URL, "", detail="the URL is not text")
    limits = PageLimits(
        max_bytes=max(int(max_bytes), 0),
        max_pdf_bytes=max(int(max_pdf_bytes), 0),
        max_chars=max(int(max_chars), 0),
        pdf_seconds=pdf_timeout_s,
        https_only=True,
    )
    async with PageFetcher(SiteConfig()) as fetcher:
        return await fetcher.fetch(url, timeout=timeout_s, limits=limits)


async def afetch_text(
    url: str,
    max_bytes: int = 400_000,
    timeout_s: float = 8.0,
    max_chars: int = 4000,
    max_pdf_bytes: int = 12_000_000,
    pdf_timeout_s: float = 60.0,
) -> str:
    """The main text of a page or PDF, `""` when there is none; as `fetch_text`."""
    outcome = await afetch_outcome(
        url, max_bytes, timeout_s, max_chars, max_pdf_bytes, pdf_timeout_s
    )
    return outcome.text


async def afetch_text_and_date(
    url: str,
    *,
    max_bytes: int = 400_000,
    timeout_s: float = 8.0,
    max_chars: int = 4000,
    max_pdf_bytes: int = 12_000_000,
    pdf_timeout_s: float = 60.0,
) -> tuple[str, str | None]:
    """Text and declared publish date; as `fetch_text_and_date`."""
    outcome = await afetch_outcome(
        url, max_bytes, timeout_s, max_chars, max_pdf_bytes, pdf_timeout_s
    )
    # What a PDF's metadata holds is when the file was made.
    return outcome.text, None if outcome.stage == "pdf" else outcome.published_at


def fetch_outcome(
    url: str,
    max_bytes: int = 400_000,
    timeout_s: float = 8.0,
    max_chars: int = 4000,
    max_pdf_bytes: int = 12_000_000,
    pdf_timeout_s: float = 60.0,
) -> FetchOutcome:
    """Read a page, and say what became of it; as `afetch_outcome`, for code that is not async."""
    return run_to_end(
        lambda: afetch_outcome(url, max_bytes, timeout_s, max_chars, max_pdf_bytes, pdf_timeout_s)
    )


def fetch_text(
    url: str,
    max_bytes: int = 400_000,
    timeout_s: float = 8.0,
    max_chars: int = 4000,
    max_pdf_bytes: int = 12_000_000,
    pdf_timeout_s: float = 60.0,
) -> str:
    """The main text of a page or PDF, a paragraph a line; `""` when there is none.

    Safe to call from any thread, also while an event loop runs in it, which it then blocks.
    """
    return fetch_outcome(url, max_bytes, timeout_s, max_chars, max_pdf_bytes, pdf_timeout_s).text


def fetch_text_and_date(
    url: str,
    *,
    max_bytes: int = 400_000,
    timeout_s: float = 8.0,
    max_chars: int = 4000,
    max_pdf_bytes: int = 12_000_000,
    pdf_timeout_s: float = 60.0,
) -> tuple[str, str | None]:
    """As `fetch_text`, with the publish date as the page declares it (None: it does not)."""
    return run_to_end(
        lambda: afetch_text_and_date(
            url,
            max_bytes=max_bytes,
            timeout_s=timeout_s,
            max_chars=max_chars,
            max_pdf_bytes=max_pdf_bytes,
            pdf_timeout_s=pdf_timeout_s,
        )
    )


async def ais_public_https(url: str) -> bool:
    """True for an https URL whose host has addresses, all of them public; as `is_public_https`."""
    if not isinstance(url, str):
        return False
    try:
        target = check_url(url, Policy())
        if target.origin.scheme != "https":
            return False
        host = target.origin.host
        addresses = (
            [host] if is_public_address(host) else await resolve_host(host, target.origin.port)
        )
    except (URLScrapeError, NameNotFoundError):
        return False
    return bool(addresses) and all(is_public_address(address) for address in addresses)


def is_public_https(url: str) -> bool:
    """True for an https URL, on its usual port, whose host has addresses, all of them public.

    Advice, not protection: the name may have another address a moment later. What reads pages
    vets the address it connects to.
    """
    return run_to_end(lambda: ais_public_https(url))


def extract_published_date(html: str) -> str | None:
    """The publish date a page declares, the raw string as found; None when there is none.

    In this order: JSON-LD (`datePublished` before `dateCreated`), the meta element
    `article:published_time`, other meta elements for it, the first time element.
    """
    # Imported here, like the parser below: who reads pages has them in the workers only.
    from citeflow.fetch.dates import extract_published_date as extract

    return extract(html)


def strip_html_to_text(html: str, max_chars: int) -> str:
    """The text of a page on one line, all of it: not only the main text, but no menus, footers,
    page headers, scripts or comments. At most `max_chars` characters, none below 1."""
    if not isinstance(html, str):
        return ""
    if max_chars < 1:
        return ""
    from selectolax.lexbor import LexborHTMLParser

    from citeflow.fetch.clean import clean_line, without_surrogates
    from citeflow.fetch.guard import guard
    from citeflow.fetch.prune import prune

    markup = guard(prune(without_surrogates(html)).html)
    tree = LexborHTMLParser(_BLOCK_TAG.sub(r" \g<0>", markup))
    if tree.body is None:
        return ""
    dropped = tree.body.css(_DROPPED)
    # The header of an article is its headline; that of a page is a logo and a menu.
    dropped += [node for node in tree.body.css("header") if not _within_article(node)]
    for node in reversed(dropped):
        node.remove(recursive=True)
    return clean_line(tree.body.text(deep=True))[:max_chars].rstrip()


def _within_article(node: object) -> bool:
    parent = getattr(node, "parent", None)
    while parent is not None:
        if parent.tag in ("article", "main"):
            return True
        parent = parent.parent
    return False
