"""Reading a DuckDuckGo result page: hits in the page's order, or why there are none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lxml.etree import LxmlError  # type: ignore[import-untyped]  # ddgs brings it

from citeflow.search.duckduckgo_job import JobAnswer, Row
from citeflow.search.links import is_duckduckgo_ad, is_web_url, resolve_redirect
from citeflow.search.outcome import SearchStatus

if TYPE_CHECKING:
    from ddgs.engines.duckduckgo import Duckduckgo

__all__ = ["read_page"]

# Structure, not words: the page repeats the query, which may contain any words.
_NOTHING_FOUND_XPATH = (
    "//*[contains(concat(' ', normalize-space(@class), ' '), ' no-results ')"
    " or contains(concat(' ', normalize-space(@class), ' '), ' result--no-result ')]"
)
_CHALLENGE_XPATH = (
    "//*[contains(@class, 'anomaly-modal') or @id = 'challenge-form'"
    " or contains(@action, 'anomaly.js') or contains(@src, 'anomaly.js')]"
)
# A result without a snippet has no other link; the engine itself reads the snippet's.
_TITLE_LINK_XPATH = ".//h2//a/@href"


def read_page(engine: Duckduckgo, body: bytes, k: int) -> JobAnswer:
    """What a page that came with HTTP 200 says; never raises.

    Results are found with the engine's own expressions and read here: the engine would
    percent-decode the links once more and strip everything between `<` and `>` from titles.
    Advertisements and results without an http or https link are left out, at most `k` are kept.
    A page with neither results nor the sign for "nothing found" is not an honest zero.
    """
    try:
        tree = engine.extract_tree(engine.pre_process_html(body.decode("utf-8", "replace")))
        items = tree.xpath(engine.items_xpath)
        results = [_read_item(engine, item) for item in items]
        nothing_found = bool(tree.xpath(_NOTHING_FOUND_XPATH))
        challenged = bool(tree.xpath(_CHALLENGE_XPATH))
    except (LxmlError, ValueError, RecursionError):
        return JobAnswer(SearchStatus.UNAVAILABLE, detail="its page could not be parsed")
    ads = sum(1 for row in results if is_duckduckgo_ad(row.url))
    rows = [row for row in results if is_web_url(row.url) and not is_duckduckgo_ad(row.url)]
    if rows:
        return JobAnswer(SearchStatus.OK, rows[:k])
    if challenged:
        return JobAnswer(SearchStatus.CHALLENGED, detail="a page that asks for proof of a human")
    if nothing_found or (ads and ads == len(results)):
        return JobAnswer(SearchStatus.EMPTY)
    return JobAnswer(SearchStatus.UNAVAILABLE, detail="its page is not a result page as known")


def _read_item(engine: Duckduckgo, item: Any) -> Row:
    xpaths = engine.elements_xpath
    links = item.xpath(xpaths["href"]) or item.xpath(_TITLE_LINK_XPATH)
    return Row(
        title="".join(item.xpath(xpaths["title"])),
        url=resolve_redirect(str(links[0]).strip()) if links else "",
        snippet="".join(item.xpath(xpaths["body"])),
    )
