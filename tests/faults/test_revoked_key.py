"""A revoked API key is refused after SIGHUP by every worker, whatever hinders their replacements."""

import asyncio
import signal
from pathlib import Path

import httpx

from app.auth.keys import new_key
from app.redis.connect import connect
from app.redis.embedded import serve as serve_valkey
from tests.faults.process import process
from tests.faults.until import until
from tests.valkey import process_of, stopped

REQUESTS = 20


async def test_a_revoked_key_ends_with_sighup_though_the_store_hangs(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    (kept, kept_lines), (revoked, revoked_lines) = new_key("kept"), new_key("revoked")
    file.write_text(kept_lines + revoked_lines)
    with serve_valkey(None) as url:
        client = connect(url)
        pid = await process_of(client)
        await client.aclose()
        with process(WORKERS="3", REDIS_URL=url, API_KEYS_FILE=str(file)) as service:
            service.listens(workers=3)

            async def answered(key: str) -> set[int]:
                """The statuses that all workers together give; each request has a connection of its own."""
                async with httpx.AsyncClient(timeout=60) as caller:
                    query = {"url": "http://127.0.0.1:1/robots.txt", "agent": "ExampleBot", "wait": "0"}
                    headers = {"Authorization": f"Bearer {key}", "Connection": "close"}
                    asked = (
                        caller.get(f"{service.url}/v1/allowed", params=query, headers=headers) for _ in range(REQUESTS)
                    )
                    return {response.status_code for response in await asyncio.gather(*asked)}

            assert await answered(revoked) == {200}
            with stopped(pid):
                file.write_text(kept_lines)
                service.tell(signal.SIGHUP)
                await until(lambda: answered(revoked), lambda statuses: statuses == {401})
                assert await answered(kept) == {200}
