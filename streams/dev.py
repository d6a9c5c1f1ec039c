"""The whole line in one process: embedded broker, topics, worker and, if asked, a sample web."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from citeflow.settings import SiteConfig
from streams.config import StreamConfig
from streams.demo import DemoWeb
from streams.embedded import embedded_profile, running_broker
from streams.live_settings import following_settings
from streams.runner import WorkerRunner, wait_for_topics
from streams.voice import say

__all__ = ["development_line"]


@contextlib.asynccontextmanager
async def development_line(
    config: StreamConfig, site_config: SiteConfig, *, demo: bool
) -> AsyncIterator[tuple[StreamConfig, WorkerRunner]]:
    """A running line on its own broker, for the length of the block.

    With `demo`, searches and pages come from a sample web on loopback, and nothing else is
    asked: it works with no internet.
    """
    async with contextlib.AsyncExitStack() as stack:
        broker = await stack.enter_async_context(running_broker())
        local = embedded_profile(config, broker.address)
        say(f"embedded broker on {broker.address}")
        await wait_for_topics(local)
        if demo:
            web = await stack.enter_async_context(DemoWeb())
            say(f"sample web on {web.origin}")
            # The guard lets exactly this origin pass, because the operator named it.
            site_config = site_config.with_values(
                {
                    "web_research_backends": "searxng",
                    "web_research_searxng_url": web.origin,
                    "fetch_allowed_internal_origins": web.origin,
                    # Its port differs each time: what is stored is never used again.
                    "research_no_cache": "1",
                }
            )
        outages = await stack.enter_async_context(following_settings(local, site_config))
        say("worker starting")
        runner = await stack.enter_async_context(WorkerRunner(local, site_config))
        await stack.enter_async_context(outages.reported_to(runner.report))
        say("worker ready")
        yield local, runner
