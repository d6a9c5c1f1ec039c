"""Reading a DuckDuckGo result page: hits in the page's order, or why there are none."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from lxml.etree import LxmlError

from citeflow.search.duckduckgo_job import JobAnswer
from citeflow.search.links import is_duckduckgo_ad, is_result_url, resolve_redirect
from citeflow.search.outcome import SearchStatus
from citeflow.search.text import make_hit

if TYPE_CHECKING:
    from ddgs.engines.duckduckgo import Duckduckgo

__all__ = ["CHALLENGE_XPATH", "MAX_RESULTS", "NOTHING_FOUND_XPATH", "answer_of", "read_page"]

# Structure, not words: the page repeats the query, which may contain any words.
NOTHING_FOUND_XPATH = (
    "//*[contains(concat(' ', normalize-space(@class), ' '), ' no-results ')"
    " or contains(concat(' ', normalize-space(@class), ' '), ' result--no-result ')]"
)
CHALLENGE_XPATH = (
    "//*[contains(@class, 'anomaly-modal') or @id = 'challenge-form'"
    " or contains(@action, 'anomaly.js') or contains(@src, 'anomaly.js')]"
)
# A page holds about thirty results. More is no page of this engine's, and need not be read.
MAX_RESULTS = 1_000

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
        items = tree.xpath(engine.items_xpath)[:MAX_RESULTS]
        results = [_read_item(engine, item) for item in items]
        nothing_found = bool(tree.xpath(NOTHING_FOUND_XPATH))
        challenged = bool(tree.xpath(CHALLENGE_XPATH))
    except (LxmlError, ValueError, RecursionError):
        return JobAnswer(SearchStatus.UNAVAILABLE, detail="its page could not be parsed")
    return answer_of(results, k, nothing_found=nothing_found, challenged=challenged)


def answer_of(
    results: list[tuple[str, str, str]], k: int, *, nothing_found: bool, challenged: bool
) -> JobAnswer:
    """What title, resolved link and snippet of each result, and the page's signs, come to."""
    organic = [result for result in results if not is_duckduckgo_ad(result[1])]
    made = (make_hit(*result) for result in organic if is_result_url(result[1]))
    hits = list(itertools.islice((hit for hit in made if hit is not None), k))
    if hits:
        return JobAnswer(SearchStatus.OK, hits)
    if challenged:
        return JobAnswer(SearchStatus.CHALLENGED, detail="a page that asks for proof of a human")
    if nothing_found or (results and not organic):
        return JobAnswer(SearchStatus.EMPTY)
    return JobAnswer(SearchStatus.UNAVAILABLE, detail="its page is not a result page as known")


def _read_item(engine: Duckduckgo, item: Any) -> tuple[str, str, str]:
    """Title, resolved link (`""` if none) and snippet."""
    xpaths = engine.elements_xpath
    links = item.xpath(xpaths["href"]) or item.xpath(_TITLE_LINK_XPATH)
    return (
        "".join(item.xpath(xpaths["title"])),
        resolve_redirect(str(links[0]).strip()) if links else "",
        "".join(item.xpath(xpaths["body"])),
    )
