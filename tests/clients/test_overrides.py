"""`robots-decisions overrides`: list, set and remove the overrides of a running service."""

import json
from pathlib import Path

from httpx import AsyncClient
from robots_decisions.cli.overrides import READ_LIMIT

from robots_core.robots.access import BODY_LIMIT
from tests.cli.serving import service
from tests.clients.commands import Ended, run
from tests.operator_token import TOKEN_FILE, TOKEN_HEADER

WHY = ("--reason", "They asked us to.")


async def operate(*arguments: str, given: bytes = b"") -> Ended:
    """Run the command with the operator's token."""
    return await run("overrides", *arguments, given=given, ROBOTS_API_KEY=TOKEN_FILE.read_text().strip())


async def test_overrides_are_set_listed_and_removed(store_url: str, store_client: object, tmp_path: Path) -> None:
    file = tmp_path / "robots.txt"
    file.write_text("User-agent: *\nDisallow: /basket/\n")
    async with service(store_url) as url:
        server = ("--server", url)
        slow = ("--scope", "shop.example", "--action", "delay", "--delay", "30", "--agent", "ExampleBot")
        refused = await run("overrides", "list", *server)
        assert (refused.code, refused.out) == (3, "")
        assert "answers 401: Without API keys, this route needs the operator's token." in refused.err
        ended = await operate("set", "slow", *slow, *WHY, "--expires-at", "2099-12-31T00:00:00Z", *server)
        assert (ended.code, ended.err) == (0, "")
        effect = "slow  delay 30 s for examplebot on shop.example, until 2099-12-31T00:00:00Z: They asked us to. ["
        assert ended.out.startswith(effect)
        other = ("--scope", "https://other.example", "--action", "robots", "--shadow", "--json", *WHY, *server)
        ended = await operate("set", "other", "--robots", str(file), *other)
        assert json.loads(ended.out)["robots"] == file.read_text()
        ended = await operate("set", "other", "--robots", "-", *other, given="Allow: /é".encode())
        assert json.loads(ended.out)["robots"] == "Allow: /é"
        listed = (await operate("list", *server)).out.splitlines()
        assert [line.split()[0] for line in listed] == ["other", "slow"]
        of_url = await operate("list", "--url", "https://www.shop.example/", "--json", *server)
        assert json.loads(of_url.out)["id"] == "slow"
        removed = await operate("remove", "slow", *server)
        assert (removed.code, removed.out, removed.err) == (0, "", "")
        again = await operate("remove", "slow", *server)
        assert (again.code, again.out) == (3, "")
        assert "answers 404: No override has the id 'slow'." in again.err
        bad = await operate("set", "bad", "--scope", "a/b", "--action", "deny", *WHY, *server)
        assert bad.code == 3
        assert "answers 422: scope is 'a/b'" in bad.err
        assert len((await operate("list", *server)).out.splitlines()) == 1


async def test_overrides_list_goes_on_to_the_next_page(store_url: str, store_client: object) -> None:
    async with service(store_url) as url:
        many = [f"o-{number:03}" for number in range(102)]
        async with AsyncClient(base_url=url, headers=TOKEN_HEADER) as client:
            for name in many:
                override = {"scope": f"{name}.example", "action": "deny", "reason": "x"}
                answer = await client.put(f"/v1/overrides/{name}", json=override)
                assert answer.is_success, answer.text
        listed = (await operate("list", "--server", url)).out.splitlines()
    assert [line.split()[0] for line in listed] == many


async def test_text_of_an_override_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"\xe9")
    for name, said in (("latin", "is not UTF-8, as the text of an override must be."), ("none", "Cannot read ")):
        robots = ("--scope", "h.example", "--action", "robots", "--robots", str(tmp_path / name))
        ended = await run("overrides", "set", "one", *robots, *WHY)
        assert (ended.code, ended.out) == (3, "")
        assert said in ended.err
    assert READ_LIMIT > BODY_LIMIT
