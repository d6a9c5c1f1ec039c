"""`python -m streams`: run the line, look at its topics, put requests on it, read its answers."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import dataclasses
import logging
import sys
from collections.abc import Coroutine, Sequence
from typing import Any

from aiokafka.errors import KafkaError

import schemas
from citeflow.errors import CiteflowError
from citeflow.settings import SiteConfig
from streams.apps import APP_NAMES, EVERY_APP, required_topics
from streams.cli_findings import add_findings
from streams.cli_rejected import add_rejected
from streams.cli_replay import add_replay
from streams.client import Client
from streams.config import StreamConfig, check_broker
from streams.dev import development_line
from streams.health import serving_health
from streams.last_words import hand_in, say_last_words
from streams.live_settings import following_settings
from streams.log_reader import contexts
from streams.process import end_in, run_until_signal
from streams.profile import PROFILE_ENV, load_config
from streams.runner import (
    BrokerUnreachableError,
    WorkerCrashedError,
    WorkerRunner,
    wait_for_topics,
)
from streams.topics import TOPICS, TopicError, check_topics, ensure_topics
from streams.voice import result, say
from streams.watchdog import WorkerStuckError

__all__ = ["main"]

OK, FAILED, NOT_SEARCHED, TIMED_OUT = 0, 1, 3, 4
"""Exit codes. 3: the request was answered, but the search was refused or failed."""

# Beyond the worker's own bound on stopping, for the broker and whatever else must end.
STOP_MARGIN = 1.2
# And for what a worker says on Discord when it ends on a fault.
LAST_WORDS = 8.0
# What a development run may take to stop as a whole, with its broker and its worker.
DEV_STOP_GRACE = 4.5


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    arguments = _parser().parse_args(argv)
    _set_up_logging(arguments.verbose)
    try:
        config = load_config()
        if getattr(arguments, "broker", None):
            config = dataclasses.replace(config, broker=check_broker(arguments.broker))
        grace = DEV_STOP_GRACE if arguments.command is _dev else config.stop_timeout + STOP_MARGIN
        return run_until_signal(arguments.command(arguments, config), grace=grace)
    except BrokenPipeError:
        sys.stderr.close()
        return FAILED
    except (
        CiteflowError,
        TopicError,
        BrokerUnreachableError,
        WorkerCrashedError,
        WorkerStuckError,
        schemas.EventError,
    ) as exc:
        say(f"error: {exc}")
    except KafkaError as exc:
        say(f"error: no answer from the broker at {config.broker} ({type(exc).__name__})")
    return FAILED


async def _dev(arguments: argparse.Namespace, config: StreamConfig) -> int:
    async with development_line(config, SiteConfig(), demo=arguments.demo) as (local, runner):
        if arguments.once:
            return await _request_once(local.broker, arguments.once, arguments.timeout)
        say(f'try: python -m streams request --broker {local.broker} --wait "{_DEMO_TOPIC}"')
        say(
            f"a second worker: {PROFILE_ENV}=embedded python -m streams worker"
            f" --broker {local.broker}"
        )
        say("Ctrl-C stops everything")
        return await _until_stopped(runner, DEV_STOP_GRACE, SiteConfig())


async def _worker(arguments: argparse.Namespace, config: StreamConfig) -> int:
    if "audit" in (arguments.app or ()) and not config.database_url:
        say("error: the copy of findings needs CITEFLOW_DATABASE_URL")
        return FAILED
    await wait_for_topics(config, timeout=arguments.broker_timeout)
    site_config = SiteConfig()
    async with contextlib.AsyncExitStack() as stack:
        outages = await stack.enter_async_context(following_settings(config, site_config))
        runner = WorkerRunner(config, site_config, apps=arguments.app or APP_NAMES)
        if arguments.health_port is not None:
            await stack.enter_async_context(
                serving_health(
                    arguments.health_port,
                    runner.unready,
                    runner.metrics,
                    host=arguments.health_host,
                )
            )
        await hand_in(site_config, config.broker)
        await stack.enter_async_context(runner)
        await stack.enter_async_context(outages.reported_to(runner.report))
        say("worker ready")
        return await _until_stopped(runner, config.stop_timeout + STOP_MARGIN, site_config)


async def _until_stopped(runner: WorkerRunner, grace: float, site_config: SiteConfig) -> int:
    try:
        await runner.wait()
    except asyncio.CancelledError:
        return OK  # by a signal, which is how it is meant to end
    except (WorkerCrashedError, WorkerStuckError) as exc:
        # Said at once, and the end made sure of: what is broken may also hang when stopped.
        say(f"error: {exc}")
        end_in(grace + LAST_WORDS, FAILED)
        await say_last_words(site_config, str(exc))
        end_in(grace, FAILED)
        return FAILED
    return OK


async def _topics(arguments: argparse.Namespace, config: StreamConfig) -> int:
    specs = required_topics(config)
    if arguments.action == "create":
        created = await ensure_topics(
            config.broker, specs, partitions=config.partitions, replication=config.replication
        )
        say(f"created {len(created)} of {len(specs)} topics, the others were there")
        return OK
    counts = await check_topics(config.broker, specs)
    for spec in specs:
        count = counts[spec.name]
        state = "missing" if count is None else f"{count} partitions"
        result(f"{spec.name:40} {state:15} {spec.cleanup}")
    wrong = [name for name, count in counts.items() if count != config.partitions]
    if arguments.action == "check" and wrong:
        say(f"error: expected {config.partitions} partitions on {', '.join(sorted(wrong))}")
        return FAILED
    return OK


async def _request(arguments: argparse.Namespace, config: StreamConfig) -> int:
    if arguments.wait:
        return await _request_once(config.broker, arguments.topic, arguments.timeout)
    result(await Client(config.broker).request(arguments.topic))
    return OK


async def _request_once(broker: str, topic: str, timeout: float) -> int:
    try:
        context = await Client(broker).ask(
            topic,
            timeout=timeout,
            on_sent=lambda request_id: say(f"requested {topic!r} as {request_id}"),
        )
    except TimeoutError:
        say(f"error: no answer within {timeout:g} s; the request is still being worked on")
        return TIMED_OUT
    _report(context)
    if context.corpus:
        result(context.corpus)
    unsearched = (schemas.ContextOutcome.BLOCKED, schemas.ContextOutcome.FAILED)
    return NOT_SEARCHED if context.outcome in unsearched else OK


async def _contexts(arguments: argparse.Namespace, config: StreamConfig) -> int:
    found = contexts(config.broker, request_id=arguments.request_id, follow=arguments.follow)
    async with contextlib.aclosing(found):
        async for context in found:
            result(schemas.encode(context).decode())
            if arguments.request_id:
                break
    return OK


def _report(context: schemas.ContextReady) -> None:
    reasons = f" ({', '.join(context.reasons)})" if context.reasons else ""
    say(f"context of {context.request_id}: {context.outcome}{reasons}")
    for drop in context.dropped:
        detail = f": {drop.detail}" if drop.detail else ""
        say(f"  dropped {drop.url}: {drop.reason}{detail}")
    if context.note:
        say(f"  {context.note}")


def _set_up_logging(verbose: bool) -> None:
    logging.basicConfig(
        level=logging.INFO if verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
        stream=sys.stderr,
    )
    # Its log tells addresses, of webhooks as well, which are secret.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    if not verbose:
        # Faust and its client log every ordinary rebalance and shutdown as an error or warning;
        # what matters of theirs ends the worker and is reported by it.
        for name in ("faust", "mode", "aiokafka"):
            logging.getLogger(name).setLevel(logging.CRITICAL)


_DEMO_TOPIC = "FastAPI streaming responses"


def _parser() -> argparse.ArgumentParser:
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("-v", "--verbose", action="store_true", help="log what is going on")
    remote = argparse.ArgumentParser(add_help=False)
    remote.add_argument("--broker", help="host:port[,host:port]; default: CITEFLOW_BROKER")
    parser = argparse.ArgumentParser(
        prog="python -m streams",
        description="Topics in, citation-ready corpora out, through Kafka.",
        epilog='Example: python -m streams dev --demo --once "FastAPI streaming responses"',
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(
        name: str, run: Coroutine[Any, Any, int] | Any, about: str, example: str
    ) -> argparse.ArgumentParser:
        added = commands.add_parser(
            name,
            parents=[common] if name == "dev" else [common, remote],
            help=about,
            description=about,
            epilog=f"Example: {example}",
        )
        added.set_defaults(command=run)
        return added

    dev = command(
        "dev", _dev, "Run everything here: embedded broker, topics and worker.",
        "python -m streams dev --demo",
    )  # fmt: skip
    dev.add_argument("--demo", action="store_true", help="search a sample web on loopback")
    dev.add_argument("--once", metavar="TOPIC", help="print the corpus of one topic and stop")
    dev.add_argument("--timeout", type=float, default=60.0, help="seconds to wait with --once")

    worker = command(
        "worker", _worker, "Run the agents against a broker until stopped.",
        "CITEFLOW_BROKER=kafka:9092 python -m streams worker",
    )  # fmt: skip
    worker.add_argument(
        "--app", action="append", choices=EVERY_APP, help="run only this one; repeatable"
    )
    worker.add_argument(
        "--broker-timeout", type=float, default=60.0, help="seconds to wait for the broker"
    )
    worker.add_argument(
        "--health-port", type=int, help="serve /healthz, /readyz, /metrics there; 0: a free one"
    )
    worker.add_argument("--health-host", default="127.0.0.1", help="address to serve them on")

    topics = command(
        "topics", _topics, f"Create, check or list the {len(TOPICS)} topics and the changelogs.",
        "python -m streams topics check",
    )  # fmt: skip
    topics.add_argument("action", choices=("create", "check", "list"))

    request = command(
        "request", _request, "Put a request on topics.requested; prints its id, or its corpus.",
        f'python -m streams request --wait "{_DEMO_TOPIC}"',
    )  # fmt: skip
    request.add_argument("topic")
    request.add_argument("--wait", action="store_true", help="wait for the corpus and print it")
    request.add_argument("--timeout", type=float, default=180.0, help="seconds to wait")

    add_rejected(command)
    add_replay(command)
    add_findings(command)
    found = command(
        "contexts", _contexts, "Print contexts as JSON lines, each once.",
        "python -m streams contexts --follow",
    )  # fmt: skip
    found.add_argument("--request-id", help="only the context of this request")
    found.add_argument("--follow", action="store_true", help="go on with those to come")
    return parser
