"""Reading a page of DuckDuckGo's lite version: a table whose rows alternate link and snippet."""

from __future__ import annotations

from dataclasses import dataclass

from lxml import html
from lxml.etree import HTMLParser, LxmlError, _Element

from citeflow.search.duckduckgo_job import JobAnswer
from citeflow.search.duckduckgo_page import (
    CHALLENGE_XPATH,
    MAX_RESULTS,
    NOTHING_FOUND_XPATH,
    answer_of,
)
from citeflow.search.links import resolve_redirect
from citeflow.search.outcome import SearchStatus

__all__ = ["read_lite_page"]

# The lite page says it in a cell of its own. The whole text of an element is compared, because
# the page also repeats the query, which may contain any words.
_NOTHING_FOUND_TEXTS = frozenset({"No results.", "No more results.", "No results found."})


@dataclass(slots=True)
class _Result:
    title: str
    href: str
    sponsored: bool
    snippet: str | None = None


def read_lite_page(body: bytes, k: int) -> JobAnswer:
    """What a page that came with HTTP 200 says; never raises.

    A snippet belongs to the link before it: a result without one leaves the others theirs.
    Advertisements and results without an http or https link are left out, at most `k` are kept.
    A page with neither results nor the sign for "nothing found" is not an honest zero.
    """
    try:
        parser = HTMLParser(remove_comments=True, remove_pis=True, collect_ids=False)
        tree = html.document_fromstring(body.decode("utf-8", "replace"), parser=parser)
        results = _results(tree)
        nothing_found = bool(tree.xpath(NOTHING_FOUND_XPATH)) or _says_nothing_found(tree)
        challenged = bool(tree.xpath(CHALLENGE_XPATH))
    except (LxmlError, ValueError, RecursionError):
        return JobAnswer(SearchStatus.UNAVAILABLE, detail="its page could not be parsed")
    organic = [
        (result.title, resolve_redirect(result.href.strip()), result.snippet or "")
        for result in results
        if not result.sponsored
    ]
    nothing_found = nothing_found or (bool(results) and not organic)
    return answer_of(organic, k, nothing_found=nothing_found, challenged=challenged)


def _results(tree: _Element) -> list[_Result]:
    results: list[_Result] = []
    for element in tree.iter("a", "td"):
        classes = (element.get("class") or "").split()
        if element.tag == "a" and "result-link" in classes:
            if len(results) == MAX_RESULTS:
                break
            sponsored = any(
                "result-sponsored" in (row.get("class") or "").split()
                for row in element.iterancestors("tr")
            )
            href = element.get("href") or ""
            results.append(_Result("".join(element.itertext()), href, sponsored))
        elif "result-snippet" in classes and results and results[-1].snippet is None:
            results[-1].snippet = "".join(element.itertext())
    return results


def _says_nothing_found(tree: _Element) -> bool:
    return any(
        (element.text or "").strip() in _NOTHING_FOUND_TEXTS and len(element) == 0
        for element in tree.iter("td", "span", "div", "p")
    )
