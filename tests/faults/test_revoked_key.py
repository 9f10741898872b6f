"""After SIGHUP, every worker refuses a revoked API key, even if its replacement is delayed."""

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


async def test_sighup_revokes_a_key_while_the_store_hangs(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    (kept, kept_lines), (revoked, revoked_lines) = new_key("kept"), new_key("revoked")
    file.write_text(kept_lines + revoked_lines)
    with serve_valkey(None) as url:
        client = connect(url)
        pid = await process_of(client)
        await client.aclose()
        with process(WORKERS="3", REDIS_URL=url, API_KEYS_FILE=str(file)) as service:
            service.wait_ready(workers=3)

            async def answered(key: str) -> set[int]:
                """The statuses from all workers; each request has its own connection."""
                async with httpx.AsyncClient(timeout=60) as caller:
                    query = {"url": "http://127.0.0.1:1/robots.txt", "agent": "ExampleBot", "wait": "0"}
                    headers = {"Authorization": f"Bearer {key}", "Connection": "close"}
                    requests = (
                        caller.get(f"{service.url}/v1/allowed", params=query, headers=headers) for _ in range(REQUESTS)
                    )
                    return {response.status_code for response in await asyncio.gather(*requests)}

            assert await answered(revoked) == {200}
            with stopped(pid):
                file.write_text(kept_lines)
                service.send_signal(signal.SIGHUP)
                await until(lambda: answered(revoked), lambda statuses: statuses == {401})
                assert await answered(kept) == {200}
