"""Request each of ORIGINS (2,000) cold origins four times at once, from four workers, then from four processes.

python -m tests.faults.cold_origins

Prints the number of fetches and the answers. Exits with 1 unless every origin was fetched once and every answer is
right.
"""

import asyncio
import os
import sys
import time
from collections import Counter
from contextlib import AsyncExitStack

import httpx

from app.store.embedded import serve as serve_valkey
from tests.faults.loopback import web
from tests.faults.process import process
from tests.origins import text

ORIGINS, QUESTIONS, CONNECTIONS = 2000, 4, 64
PATIENT = "tests.patient_service"
"""The most origins that may be fetched twice: a process that finds the store slow works alone for a second."""

FILE = "User-agent: *\nDisallow: /private/\n"


async def ask(processes: int, workers: int, origins: int) -> bool:
    """Run so many processes with so many workers each; whether every origin was fetched once, with right answers."""
    answers: Counter[str] = Counter()
    async with AsyncExitStack() as stack:
        store = stack.enter_context(serve_valkey(None))
        sites = await stack.enter_async_context(web(text(200, FILE)))
        # Minutes, so that no fetch times out on a busy machine.
        settings = {"REDIS_URL": store, "FETCH_TIMEOUT": "60", "ACCESS_LOG": "false", "WORKERS": str(workers)}
        services = [stack.enter_context(process(module=PATIENT, **settings)) for _ in range(processes)]
        urls = [await asyncio.to_thread(service.wait_ready, workers) for service in services]
        limits = httpx.Limits(max_connections=CONNECTIONS)
        client = await stack.enter_async_context(httpx.AsyncClient(timeout=120.0, limits=limits))
        questions = iter([(site, n) for site in [sites.new() for _ in range(origins)] for n in range(QUESTIONS)])

        async def caller() -> None:
            for site, number in questions:
                query = {"url": f"{site}/private/page", "agent": "ExampleBot", "wait": "60"}
                try:
                    response = await client.get(f"{urls[number % len(urls)]}/v1/allowed", params=query)
                except httpx.RemoteProtocolError:  # an idle connection was closed while it was used again
                    answers["asked again"] += 1
                    response = await client.get(f"{urls[number % len(urls)]}/v1/allowed", params=query)
                answers[response.json().get("verdict", f"status {response.status_code}")] += 1

        begun = time.monotonic()
        await asyncio.gather(*(caller() for _ in range(CONNECTIONS)))
        seconds = time.monotonic() - begun
        fetches, twice = sum(sites.requests.values()), sum(count > 1 for count in sites.requests.values())
    counts = ", ".join(f"{count} {verdict}" for verdict, count in answers.items())
    print(
        f"{processes} processes of {workers} workers: {fetches} fetches of {origins} origins, "
        f"{twice} more than once; {counts}; {seconds:.0f} s"
    )
    del answers["asked again"]
    return fetches == origins and not twice and answers == {"disallow": QUESTIONS * origins}


async def measure() -> bool:
    """Check four workers, then four processes; exit with 1 if anything is wrong."""
    origins = int(os.environ.get("ORIGINS") or ORIGINS)
    return all([await ask(1, 4, origins), await ask(4, 1, origins)])


if __name__ == "__main__":
    sys.exit(0 if asyncio.run(measure()) else 1)
