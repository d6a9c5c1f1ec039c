"""The settings as plain rows: key, default, minimum, maximum, meaning.

Only data; `citeflow.settings` gives the rows their behaviour. The defaults are those of the
system citeflow reimplements, except where a row says otherwise.
"""

from __future__ import annotations

__all__ = ["SETTING_TABLE"]

_Row = tuple[str, str | bool | int | float, float | None, float | None, str]

_TIER2 = (
    "stackoverflow.com,wikipedia.org,arxiv.org,research.google.com,aws.amazon.com,"
    "cloud.google.com,microsoft.com,apple.com,python.org,pypi.org,postgresql.org,mozilla.org,"
    "w3.org,ietf.org,rfc-editor.org,owasp.org,acm.org,aclanthology.org,dblp.org,jstor.org,"
    "imf.org,oecd.org,worldbank.org,hbr.org,npr.org,propublica.org,rust-lang.org,pytorch.org,"
    "nodejs.org,apache.org,r-project.org,opensource.org,linuxfoundation.org,eff.org,"
    "semanticscholar.org,nber.org,mlcommons.org"
)

_CONTEXT: tuple[_Row, ...] = (
    (
        "known_references_json",
        "",
        None,
        None,
        "JSON object {keyword: [{title, url}]} that replaces the built-in reference map.",
    ),
    (
        "research_extract_web_content",
        True,
        None,
        None,
        "Read each result's page; off: search results only.",
    ),
    (
        "research_require_fetched_source_for_citation",
        True,
        None,
        None,
        "Drop web results whose page could not be read (only when pages are read).",
    ),
    (
        "research_web_content_chars_per_source",
        600,
        0,
        8000,
        "Characters of page text shown under each source; 0 shows none.",
    ),
    (
        "writer_rag_research_topic_max_sources",
        2,
        1,
        20,
        "Web sources that research_topic() renders at most.",
    ),
    (
        "research_context_timeout_seconds",
        90.0,
        1.0,
        3600.0,
        "Seconds for the look-ups of one corpus; what is not there by then is left out.",
    ),
)

_QUALITY: tuple[_Row, ...] = (
    (
        "research_min_snippet_length",
        50,
        0,
        10_000,
        "A snippet with fewer characters is too thin to be a source.",
    ),
    (
        "research_min_snippet_words",
        10,
        0,
        1_000,
        "A snippet with fewer words is too thin to be a source.",
    ),
    (
        "research_dedup_similarity_threshold",
        0.7,
        0.0,
        1.0,
        "Word similarity of two snippets from which on they are one source.",
    ),
    (
        "research_tier1_domains",
        "edu,gov,ac.uk",
        None,
        None,
        "Comma-separated host suffixes of the highest credibility (0.95).",
    ),
    (
        "research_tier2_domains",
        _TIER2,
        None,
        None,
        "Comma-separated hosts of high credibility (0.85), their subdomains included.",
    ),
    ("research_credibility_weight", 0.4, 0.0, 1e6, "Weight of domain credibility in the score."),
    ("research_snippet_quality_weight", 0.3, 0.0, 1e6, "Weight of snippet quality in the score."),
    ("research_recency_weight", 0.2, 0.0, 1e6, "Weight of recency in the score."),
    ("research_uniqueness_weight", 0.1, 0.0, 1e6, "Weight of uniqueness in the score."),
    (
        "research_search_rank_weight",
        0.4,
        0.0,
        1e6,
        "Weight of the search engine's own order in the score.",
    ),
    (
        "research_recency_fresh_days",
        7,
        0,
        36_500,
        "Age in days up to which a source is fresh (0.9).",
    ),
    (
        "research_recency_recent_days",
        365,
        0,
        36_500,
        "Age in days up to which a source is recent (0.8); older ones score 0.6.",
    ),
)

_WEB: tuple[_Row, ...] = (
    (
        "web_research_search_timeout_seconds",
        20.0,
        0.1,
        300.0,
        "Seconds for one attempt at one search backend.",
    ),
    (
        "web_research_ddg_retry_attempts",
        3,
        1,
        10,
        "Attempts at DuckDuckGo when it fails other than by a timeout.",
    ),
    (
        "web_research_ddg_retry_base_delay_ms",
        500,
        0,
        60_000,
        "Base of the exponential back-off between those attempts, in milliseconds.",
    ),
    (
        "web_research_searxng_url",
        "",
        None,
        None,
        "Base URL of a SearXNG instance with the JSON format enabled; blank: none.",
    ),
    (
        "web_research_backends",
        "duckduckgo,searxng",
        None,
        None,
        "Comma-separated search backends in the order they are asked.",
    ),
    ("web_research_max_content_chars", 2000, 100, 8000, "Characters of main text kept per page."),
    (
        "web_research_fetch_timeout_seconds",
        10.0,
        0.1,
        120.0,
        "Seconds for one page in all: name look-up, connection, headers, body, redirects.",
    ),
    ("web_research_max_concurrent", 3, 1, 64, "Pages read at once for one search."),
    (
        "fetch_max_body_bytes",
        4_000_000,
        1_000,
        50_000_000,
        "Bytes of a page read at most, as sent and again after decompression.",
    ),
    (
        "fetch_allowed_internal_origins",
        "",
        None,
        None,
        "Comma-separated origins (scheme://host:port) that may be read though not public.",
    ),
    (
        "url_scraper_allow_internal_ips",
        False,
        None,
        None,
        "Read non-public addresses too; for closed networks only.",
    ),
    (
        "crawler_contact_url",
        "",
        None,
        None,
        "Contact address added to the user agent of page requests; blank: none.",
    ),
)

_STREAM: tuple[_Row, ...] = (
    (
        "research_join_timeout_seconds",
        120.0,
        1.0,
        86_400.0,
        "Seconds after the search within which a request's context is emitted, whatever arrived.",
    ),
    (
        "stream_join_tombstone_seconds",
        86_400.0,
        60.0,
        2_592_000.0,
        "Seconds for which an answered request is remembered, to recognise redeliveries.",
    ),
    ("stream_max_searches_in_flight", 16, 1, 1_000, "Searches one worker runs at once."),
    ("stream_max_fetches_in_flight", 64, 1, 1_000, "Pages one worker reads at once."),
)

SETTING_TABLE: tuple[_Row, ...] = (*_CONTEXT, *_QUALITY, *_WEB, *_STREAM)
