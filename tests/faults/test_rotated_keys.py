"""WATCH_SECONDS: an API key that is removed from a mounted Secret is refused, without a signal or a restart."""

from pathlib import Path

import httpx

from app.auth.keys import new_key
from tests.faults.process import process
from tests.faults.until import until


async def test_a_key_that_is_gone_from_the_mounted_file_is_refused(tmp_path: Path, store_url: str) -> None:
    (old, old_lines), (new, new_lines) = new_key("old"), new_key("new")
    for directory, lines in (("..1", old_lines), ("..2", new_lines)):
        (tmp_path / directory).mkdir()
        (tmp_path / directory / "api-keys").write_text(lines)
    (tmp_path / "..data").symlink_to("..1")
    (tmp_path / "api-keys").symlink_to("..data/api-keys")
    with process(REDIS_URL=store_url, API_KEYS_FILE=str(tmp_path / "api-keys"), WATCH_SECONDS="0.1") as service:
        service.wait_ready()

        async def answered(key: str) -> int:
            async with httpx.AsyncClient(timeout=60) as caller:
                query = {"url": "http://127.0.0.1:1/", "agent": "ExampleBot", "wait": "0"}
                headers = {"Authorization": f"Bearer {key}"}
                return (await caller.get(f"{service.url}/v1/allowed", params=query, headers=headers)).status_code

        assert (await answered(old), await answered(new)) == (200, 401)
        (tmp_path / "..next").symlink_to("..2")
        (tmp_path / "..next").rename(tmp_path / "..data")
        await until(lambda: answered(new), lambda status: status == 200)
        assert await answered(old) == 401
