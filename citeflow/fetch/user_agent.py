"""What page requests say about who sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from citeflow.settings import SiteConfig

__all__ = ["PRODUCT", "build_crawler_ua"]

PRODUCT = "CiteflowContentResearcher"
"""The name that a robots.txt knows us by."""


def build_crawler_ua(site_config: SiteConfig) -> str:
    """The user agent, with the operator's `crawler_contact_url` if there is one.

    Characters that an HTTP header cannot carry are left out of the contact.
    """
    contact = site_config.get_str("crawler_contact_url").strip()
    contact = "".join(char for char in contact if " " <= char <= "~")
    suffix = f"; +{contact}" if contact else ""
    return f"Mozilla/5.0 (compatible; {PRODUCT}/1.0{suffix})"
