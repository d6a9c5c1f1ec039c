"""What every test runs under: no internet, no cache, no settings from the developer's machine."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

pytest_plugins = [
    "tests.support.broker",
    "tests.support.network",
    "tests.support.postgres",
]

_PROXY_VARIABLES = frozenset({"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy"})


def pytest_configure(config: pytest.Config) -> None:
    """Drop proxies and CITEFLOW_* settings; CITEFLOW_TEST_* choose what the tests run against."""
    for name in list(os.environ):
        setting = name.startswith("CITEFLOW_") and not name.startswith("CITEFLOW_TEST_")
        if setting or name.lower() in _PROXY_VARIABLES:
            del os.environ[name]
    # Whoever tests the cache turns it on, in a directory of the test's own.
    os.environ["CITEFLOW_RESEARCH_NO_CACHE"] = "1"
    # A shell has what it runs in the background ignore Ctrl-C, and a process passes that on to what
    # it starts: the commands under test must hear it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need a broker: with CITEFLOW_TEST_BACKEND they run on another one."""
    for item in items:
        if "broker_address" in getattr(item, "fixturenames", ()):
            item.add_marker("broker")
