"""A crawl by crawlee whose queue is on disk, in its own process, which prints the result: `python queued.py PLAN`.

PLAN is JSON: `service`, `storage` (a directory), `urls`, and, if wanted, `options` of PermitHooks, and `concurrency`.
"""

import asyncio
import json
import logging
import sys
from typing import Any

from crawlee import ConcurrencySettings
from crawlee.configuration import Configuration
from crawlee.crawlers import BasicCrawlingContext, HttpCrawler, HttpCrawlingContext
from crawlee.storage_clients import FileSystemStorageClient
from robots_decisions.crawlee import PermitHooks


async def crawl(plan: dict[str, Any]) -> dict[str, Any]:
    """What came of the crawl."""
    fetched: list[str] = []
    failed: dict[str, str] = {}
    concurrency = plan.get("concurrency", 10)
    async with PermitHooks(plan["service"], agent="ExampleBot", **plan.get("options", {})) as hooks:
        crawler = HttpCrawler(
            http_client=hooks.http_client(),
            storage_client=FileSystemStorageClient(),
            configuration=Configuration(storage_dir=plan["storage"], purge_on_start=False),
            concurrency_settings=ConcurrencySettings(desired_concurrency=concurrency, max_concurrency=concurrency),
            max_request_retries=0,
            retry_on_blocked=False,
            configure_logging=False,
        )
        hooks.install(crawler)

        @crawler.router.default_handler
        async def page(context: HttpCrawlingContext) -> None:
            fetched.append(context.request.url)

        @crawler.failed_request_handler
        async def fails(context: BasicCrawlingContext, error: Exception) -> None:
            failed[context.request.url] = repr(error)

        await crawler.run(plan["urls"])
    return {"fetched": fetched, "failed": failed, "misconfigured": str(hooks.misconfigured or "")}


def main() -> None:
    """Crawl, and print the result."""
    logging.basicConfig(level=logging.WARNING)
    print(json.dumps(asyncio.run(crawl(json.loads(sys.argv[1])))))  # noqa: T201


if __name__ == "__main__":
    main()
