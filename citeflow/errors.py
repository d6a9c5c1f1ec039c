"""Every exception the library raises, in one tree.

    CiteflowError
    ├── SettingsError          a setting has a value that cannot be used
    └── URLScrapeError         a page address cannot be read at all
        └── SSRFBlockedError   the address points to a host that must not be reached

Inside the engine failures travel as outcomes (`SearchOutcome`, `FetchOutcome`), not as
exceptions; these are for the few functions whose contract is to raise.
"""

from __future__ import annotations

__all__ = ["CiteflowError", "SSRFBlockedError", "SettingsError", "URLScrapeError"]


class CiteflowError(Exception):
    """Something in citeflow could not be done; see the message for what and why."""


class SettingsError(CiteflowError):
    """A setting has a value that cannot be used; correct the value named in the message."""


class URLScrapeError(CiteflowError):
    """A page address cannot be read: no host name, no address for it, or a refused scheme."""

    def __init__(self, message: str, *, url: str = "") -> None:
        super().__init__(message)
        self.url = url


class SSRFBlockedError(URLScrapeError):
    """The address is not a public one; add its origin to `fetch_allowed_internal_origins`
    if the operator really wants it read."""
