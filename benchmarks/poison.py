"""A poisoned partition: how much do a thousand bad records in a row slow good ones beside them?

    python -m benchmarks.poison [--good 300] [--bad 1000] [--rounds 5]

Good requests stand on all partitions but the first, bad ones on the first alone, all of them on
Kafka before a worker looks. Rounds with and without the bad records alternate, each with a worker
and a broker of its own; printed are the seconds from the worker being ready to the last answer, and
their ratio, and what a bad one costs the worker in CPU time. Loopback only.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time

import psutil
from aiokafka import AIOKafkaProducer
from aiokafka.partitioner import DefaultPartitioner

from benchmarks.chaos import serving
from benchmarks.flood import PARTITIONS, SlowWeb, environment
from benchmarks.local_broker import BROKERS, local_broker
from streams.config import StreamConfig
from streams.log_reader import contexts, read_log
from streams.runner import wait_for_topics

BAD = [b"{", b'{"topic": 5}', b'{"topic": ""}', b"\xff" * 200, b'{"no": "topic"}']


async def _produce(broker: str, good: int, bad: int) -> None:
    partitions = list(range(PARTITIONS))
    partition_of = DefaultPartitioner()
    producer = AIOKafkaProducer(bootstrap_servers=broker)
    await producer.start()
    try:
        for number in range(bad):
            await producer.send("topics.requested", BAD[number % len(BAD)], key=b"bad", partition=0)
        sent = number = 0
        while sent < good:
            key = b"r%05d" % number
            number += 1
            if partition_of(key, partitions, partitions) != 0:
                await producer.send("topics.requested", b'{"topic": "harbour %d"}' % number, key)
                sent += 1
        await producer.flush()
    finally:
        await producer.stop()


async def _round(arguments: argparse.Namespace, bad: int) -> tuple[float, float]:
    """Seconds until the good ones are answered, and of the worker's CPU until all is done."""
    async with local_broker(arguments.broker) as broker:
        await wait_for_topics(StreamConfig(broker=broker, partitions=PARTITIONS))
        await _produce(broker, arguments.good, bad)
        async with serving(SlowWeb(arguments.delay)) as origin:
            worker = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "streams", "worker",
                stdin=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env=environment(arguments.broker, broker, origin),
            )  # fmt: skip
            assert worker.stderr is not None
            try:
                async with asyncio.timeout(arguments.patience):
                    while b"worker ready" not in await worker.stderr.readline():
                        pass
                    drain = asyncio.ensure_future(worker.stderr.read())
                    started = time.monotonic()
                    left = arguments.good
                    async for _ in contexts(broker, follow=True):
                        left -= 1
                        if not left:
                            break
                    seconds = time.monotonic() - started
                    rejected = 0
                    async for _ in read_log(broker, "events.rejected", follow=bad > 0):
                        rejected += 1
                        if rejected == bad:
                            break
                    used = psutil.Process(worker.pid).cpu_times()
            finally:
                worker.kill()
                await worker.wait()
            await drain
    print(f"{bad:5} bad beside {arguments.good} good: {seconds:.2f} s", file=sys.stderr)
    return seconds, used.user + used.system


async def run(arguments: argparse.Namespace) -> None:
    """Alternate, and print medians and their ratio."""
    clean: list[float] = []
    poisoned: list[float] = []
    cpu: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(arguments.rounds):
        for bad, times in ((0, clean), (arguments.bad, poisoned)):
            seconds, used = await _round(arguments, bad)
            times.append(seconds)
            cpu[bad > 0].append(used)
    without, beside = statistics.median(clean), statistics.median(poisoned)
    print(f"{arguments.good} good requests alone: {without:.2f} s")
    print(f"beside {arguments.bad} bad ones on one partition: {beside:.2f} s")
    print(f"ratio {beside / without:.2f}")
    cost = statistics.median(cpu[True]) - statistics.median(cpu[False])
    print(f"a bad one costs the worker {1000 * cost / arguments.bad:.1f} ms of CPU time")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--broker", choices=BROKERS, default="embedded")
    parser.add_argument("--good", type=int, default=300)
    parser.add_argument("--bad", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--delay", type=float, default=0.2, help="seconds that a page takes")
    parser.add_argument("--patience", type=float, default=300, help="seconds for one round")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
