"""What pages' certificates are verified with."""

from __future__ import annotations

import functools
import ssl

import httpx

from citeflow.fetch.threads import in_thread

__all__ = ["page_tls"]


async def page_tls() -> ssl.SSLContext:
    """The context for connections to pages, one for all of a process.

    Loading the certificates takes tens of milliseconds, so a thread does it.
    """
    if not _context.cache_info().currsize:
        await in_thread(_context, name="citeflow-tls")
    return _context()


@functools.cache
def _context() -> ssl.SSLContext:
    return httpx.create_ssl_context(trust_env=False)
