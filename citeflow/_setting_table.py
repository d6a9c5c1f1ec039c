"""The settings as plain rows: key, default, minimum, maximum, meaning.

Only data; `citeflow.settings` gives the rows their behaviour. The defaults are those of the
system citeflow reimplements, except where a row says otherwise.
"""

from __future__ import annotations

from citeflow.finding_kinds import DELIVERIES, FINDING_KINDS, policy_setting

__all__ = ["ENV_ALIASES", "SECRET_SETTINGS", "SETTING_TABLE"]

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
        "research_excerpt_mode",
        "start",
        None,
        None,
        "Which part is shown: `start`, or `relevant` for the passages that share words with the "
        "topic.",
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
        "web_research_search_deadline_seconds",
        60.0,
        0.1,
        600.0,
        "Seconds for one search in all: every backend, every retry, every broader form.",
    ),
    (
        "web_research_ddg_retry_attempts",
        3,
        1,
        10,
        "Attempts at each DuckDuckGo backend when it fails in a way that may pass; a challenge, a "
        "refusal and a timeout are not asked again.",
    ),
    (
        "web_research_ddg_retry_base_delay_ms",
        500,
        0,
        60_000,
        "Base of the exponential back-off between those attempts, in milliseconds.",
    ),
    (
        "web_research_retry_after_ceiling_seconds",
        2.0,
        0.0,
        60.0,
        "A Retry-After up to this is waited out within a search; for a longer one the backend is "
        "left alone until then and the next one is asked.",
    ),
    (
        "web_research_ddg_requests_per_minute",
        30,
        0,
        100_000,
        "Requests a minute to each of the two DuckDuckGo backends; 0: no limit.",
    ),
    (
        "web_research_searxng_requests_per_minute",
        0,
        0,
        100_000,
        "Requests a minute to the SearXNG instance; 0: no limit.",
    ),
    (
        "web_research_brave_requests_per_minute",
        60,
        0,
        100_000,
        "Requests a minute to Brave; 0: no limit.",
    ),
    (
        "web_research_workers_per_address",
        1,
        1,
        10_000,
        "Worker processes behind one IP address; each takes its share of the requests a minute.",
    ),
    (
        "web_research_circuit_failures",
        5,
        1,
        1_000,
        "Failures in a row after which a backend is left alone for a while.",
    ),
    (
        "web_research_circuit_open_seconds",
        60.0,
        1.0,
        3_600.0,
        "Seconds for which it is left alone, if no Retry-After says; then one search tries it.",
    ),
    (
        "web_research_searxng_url",
        "",
        None,
        None,
        "Base URL of a SearXNG instance with the JSON format enabled; blank: none. "
        "CITEFLOW_SEARXNG_URL sets it too.",
    ),
    (
        "brave_api_key",
        "",
        None,
        None,
        "Key of the Brave Search API; blank: Brave is not asked. Never printed.",
    ),
    (
        "web_research_backends",
        "duckduckgo,ddg_lite,searxng,brave",
        None,
        None,
        "Comma-separated search backends in the order they are asked.",
    ),
    (
        "research_no_cache",
        "",
        None,
        None,
        "Anything but blank, 0 or false turns the cache of searches off.",
    ),
    (
        "research_cache_dir",
        "",
        None,
        None,
        "Directory of the cache; blank: citeflow in the user's cache directory.",
    ),
    (
        "research_cache_ttl_seconds",
        21_600.0,
        0.0,
        31_536_000.0,
        "Seconds for which a stored search is used instead of a new one.",
    ),
    (
        "research_cache_max_bytes",
        100_000_000,
        0,
        1_000_000_000_000,
        "Size of the cache in bytes; the oldest entries make room.",
    ),
    ("web_research_max_content_chars", 2000, 100, 7000, "Characters of main text kept per page."),
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
        "fetch_max_pdf_bytes",
        12_000_000,
        1_000,
        100_000_000,
        "The same for what is declared as PDF and begins like one.",
    ),
    ("fetch_host_concurrency", 4, 1, 1000, "Requests to one host at once."),
    (
        "fetch_host_interval_ms",
        50,
        0,
        60_000,
        "Milliseconds between the starts of two requests to one host.",
    ),
    (
        "fetch_respect_robots",
        True,
        None,
        None,
        "Leave out pages that the robots.txt of their site asks us not to read.",
    ),
    (
        "fetch_page_cache_seconds",
        0.0,
        0.0,
        86_400.0,
        "Seconds for which a page that was read is kept in memory and not read again; 0: never.",
    ),
    (
        "fetch_allowed_internal_origins",
        "",
        None,
        None,
        "Comma-separated origins (scheme://host:port) that may be read though not public.",
    ),
    (
        "fetch_proxy_url",
        "",
        None,
        None,
        "Proxy for pages, http://user:password@host:port or https; blank: none. Addresses are "
        "vetted before it is asked; allowed internal origins are reached without it.",
    ),
    (
        "fetch_proxy_tunnels_http",
        False,
        None,
        None,
        "Ask the proxy for a tunnel to the vetted address for http pages too, not only for https; "
        "many proxies refuse that.",
    ),
    (
        "url_scraper_allow_internal_ips",
        False,
        None,
        None,
        "Read non-public addresses too; for closed networks only.",
    ),
    (
        "internal_links_table",
        "posts",
        None,
        None,
        "Table or view of published posts, as PostgreSQL spells it, with its schema if need be.",
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
        "stream_page_cache_seconds",
        300.0,
        0.0,
        86_400.0,
        "As fetch_page_cache_seconds, for the fetch agents of a worker.",
    ),
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
    (
        "stream_max_hits_age_seconds",
        20.0,
        1.0,
        3_600.0,
        "While hits wait longer than this for their pages' turn, no search is begun.",
    ),
    (
        "stream_max_pages_age_seconds",
        5.0,
        1.0,
        3_600.0,
        "While pages wait longer than this to be scored, no page is read.",
    ),
    (
        "stream_park_blocked_requests",
        True,
        None,
        None,
        "When every backend refused, keep the request and search once more after the shortest wait "
        "asked for, if its deadline allows.",
    ),
    (
        "stream_park_seconds",
        15.0,
        0.0,
        60.0,
        "The wait of a request kept so when no backend named one.",
    ),
)

_ALERTS: tuple[_Row, ...] = (
    (
        "settings_poll_seconds",
        30.0,
        1.0,
        3_600.0,
        "Seconds between two looks at app_settings where no announcement of a change comes.",
    ),
    (
        "discord_webhook_url",
        "",
        None,
        None,
        "Webhook that alerts are posted to; a secret. Blank: findings are only logged.",
    ),
    (
        "discord_webhook_url_file",
        "",
        None,
        None,
        "File that holds the webhook, read when the setting above is blank.",
    ),
    (
        "discord_critical_webhook_url",
        "",
        None,
        None,
        "Second webhook, for critical findings besides the first; a secret.",
    ),
    ("discord_critical_webhook_url_file", "", None, None, "File that holds the second webhook."),
    (
        "alert_apprise_urls",
        "",
        None,
        None,
        "Services in Apprise's notation, comma-separated, for delivery `route` and for critical "
        "findings; a secret.",
    ),
    (
        "alert_repeat_minutes",
        30.0,
        0.0,
        525_600.0,
        "Minutes after a delivery in which findings of a kind without a cooldown that have the "
        "same source, severity and dedup_key are counted instead; 0: none are.",
    ),
    (
        "alert_spool_dir",
        "",
        None,
        None,
        "Directory for what a worker that ends on a fault could not put on Kafka; blank: citeflow "
        "in the user's state directory.",
    ),
    (
        "alert_digest_hour",
        -1,
        -1,
        23,
        "Hour of the day (UTC) at which the digest of the last day is posted; -1: none.",
    ),
    *(
        row
        for kind in FINDING_KINDS.values()
        for row in (
            (
                policy_setting(kind.kind, "delivery"),
                kind.delivery,
                None,
                None,
                f"Where findings of this kind go: {', '.join(DELIVERIES)}.",
            ),
            (
                policy_setting(kind.kind, "min_severity"),
                kind.min_severity,
                None,
                None,
                "The least severity that is delivered: warn, error, critical.",
            ),
            (
                policy_setting(kind.kind, "cooldown_minutes"),
                kind.cooldown_minutes,
                0.0,
                525_600.0,
                "Minutes after a delivery in which others of the same source are counted instead.",
            ),
        )
    ),
)

SETTING_TABLE: tuple[_Row, ...] = (*_CONTEXT, *_QUALITY, *_WEB, *_STREAM, *_ALERTS)

ENV_ALIASES = {"web_research_searxng_url": "CITEFLOW_SEARXNG_URL"}
"""Second environment variables of settings, read when the first is blank."""

SECRET_SETTINGS = frozenset(
    {
        "brave_api_key",
        "fetch_proxy_url",
        "discord_webhook_url",
        "discord_critical_webhook_url",
        "alert_apprise_urls",
    }
)
"""Settings whose value is never printed."""
