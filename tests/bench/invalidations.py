"""The processor time that receiving invalidations costs a process: `python -m tests.bench.invalidations [SECONDS]`.

Eight processes each publish RATES changes a second, one by one or through their publishers; this one listens.
"""

import asyncio
import sys
import time
from multiprocessing import get_context

from redis.asyncio import Redis

from app.cache.invalidation import CHANNEL, Event, InvalidationListener, InvalidationPublisher, encode
from app.store.connect import connect, subscriber
from app.store.embedded import serve
from robots_core.origin import Origin

PROCESSES = 8
RATES = (7, 42, 423)
"""Changes a second of one process: 423 are those of 8 processes for 1,000 million origins, 42 and 7 of 80 and 500."""


def publish(url: str, number: int, rate: int, seconds: float, *, together: bool) -> None:
    """Publish for so many seconds."""
    asyncio.run(_publish(url, number, rate, seconds, together=together))


async def _publish(url: str, number: int, rate: int, seconds: float, *, together: bool) -> None:
    client = Redis.from_url(url)
    name = f"process-{number}"

    async def send(message: bytes) -> None:
        await client.publish(CHANNEL, message)

    publisher = InvalidationPublisher(send, name)
    for at in range(int(rate * seconds)):
        origin = Origin("https", f"www.site-{number}-{at}.example.com", 443)
        if together:
            await publisher.publish(Event.CHANGED, origin)
        else:
            await send(encode(name, Event.CHANGED, origin.key))
        await asyncio.sleep(1 / rate)
    await publisher.aclose()
    await client.aclose()


async def cost(url: str, rate: int, seconds: float, *, together: bool) -> float:
    """Microseconds of this process's time for each change."""
    client, received, subscribed = connect(url), 0, asyncio.Event()

    def on_event(_event: Event, _origin: Origin) -> None:
        nonlocal received
        received += 1

    async with InvalidationListener(lambda: subscriber(client), "listener", on_event, subscribed.set).listening():
        await subscribed.wait()
        expected = PROCESSES * int(rate * seconds)
        context = get_context("spawn")
        processes = [
            context.Process(target=publish, args=(url, number, rate, seconds), kwargs={"together": together})
            for number in range(PROCESSES)
        ]
        for process in processes:
            process.start()
        begun = time.process_time()
        while received < expected:  # noqa: ASYNC110 - an event for each change would be measured, too
            await asyncio.sleep(0.2)
        used = time.process_time() - begun
        for process in processes:
            process.join()
    await client.aclose()
    return used / expected * 1e6


def main() -> None:
    """Print a row for each rate."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 10.0
    print("| changes a second, of each of 8 processes | us a change, one by one | us a change, together |")
    print("|---|---|---|")
    with serve(None) as url:
        for rate in RATES:
            alone, together = (asyncio.run(cost(url, rate, seconds, together=it)) for it in (False, True))
            print(f"| {rate} | {alone:.0f} | {together:.0f} |", flush=True)


if __name__ == "__main__":
    main()
