"""`robots-decisions overrides`: list, set, remove, export and import the overrides of a running service."""

import json
from pathlib import Path

import pytest
from httpx import AsyncClient
from redis.asyncio import Redis
from robots_decisions.cli.overrides import READ_LIMIT

from robots_core.robots.access import BODY_LIMIT
from tests.cli.serving import service
from tests.clients.commands import Ended, run
from tests.operator_token import TOKEN_FILE, TOKEN_HEADER

ROWS: dict[str, dict[str, object]] = {
    "closed": {"scope": "https://a.example", "action": "deny", "agents": ["ExampleBot"]},
    "open": {"scope": "b.example", "action": "allow", "expires_at": "2099-12-31T00:00:00Z"},
    "slow": {"scope": "c.example", "action": "delay", "delay": 2.5, "shadow": True},
    "few": {"scope": "d.example", "action": "budget", "budget": 10},
    "text": {"scope": "e.example", "action": "robots", "robots": "User-agent: *\nDisallow: /é\n"},
}
"""An override of each action."""

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
        assert refused.err.endswith("Set ROBOTS_API_KEY to an API key of the service.\n")
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


async def test_overrides_of_the_file_are_listed_and_not_exported(
    store_url: str, store_client: Redis, tmp_path: Path
) -> None:
    """The export of a service is a file of overrides for another one."""
    file = tmp_path / "overrides.jsonl"
    async with service(store_url) as url:
        set_up = ("--scope", "a.example", "--action", "deny", *WHY, "--server", url)
        assert (await operate("set", "a", *set_up)).code == 0
        exported = await operate("export", "--server", url)
        file.write_text(exported.out)
        assert (await operate("remove", "a", "--server", url)).code == 0
    async with service(store_url, OVERRIDES_FILE=str(file)) as url:
        assert (await operate("export", "--server", url)).out == ""
        listed = await operate("list", "--server", url)
        assert listed.out == "a  deny for all crawlers on a.example: They asked us to. [OVERRIDES_FILE]\n"
        removed = await operate("remove", "a", "--server", url)
        assert (removed.code, removed.out) == (3, "")
        assert "answers 409: The override 'a' is in OVERRIDES_FILE: change it there." in removed.err


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


async def test_exported_overrides_are_imported_elsewhere(store_url: str, store_client: Redis, tmp_path: Path) -> None:
    file = tmp_path / "overrides.jsonl"
    async with service(store_url) as url:
        async with AsyncClient(base_url=url, headers=TOKEN_HEADER) as client:
            for name, members in ROWS.items():
                answer = await client.put(f"/v1/overrides/{name}", json={"reason": "é", **members})
                assert answer.is_success, answer.text
        exported = await operate("export", "--server", url)
        assert (exported.code, exported.err) == (0, "")
        assert [json.loads(line)["id"] for line in exported.out.splitlines()] == sorted(ROWS)
    await store_client.flushall()
    expired = json.dumps({"id": "gone", "expired": True})
    file.write_text(f"{exported.out}\n{expired}\n")
    async with service(store_url) as url:
        assert (await operate("list", "--server", url)).out == ""
        ended = await operate("import", str(file), "--server", url)
        said = f"{len(ROWS)} overrides are set; 1 had expired and are left out.\n"
        assert (ended.code, ended.out, ended.err) == (0, "", said)
        again = await operate("import", "-", "--server", url, given=exported.out.encode())
        assert (again.code, again.err) == (0, f"{len(ROWS)} overrides are set.\n")
        found = (await operate("export", "--server", url)).out
    assert list(map(what, found.splitlines())) == list(map(what, exported.out.splitlines()))


def what(line: str) -> dict[str, object]:
    """An exported override without who set it and when."""
    return {name: value for name, value in json.loads(line).items() if not name.startswith("updated_")}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", ":2 is not an override; import what `overrides export` has printed."),
        ("[" * 100_000, ":2 is not an override"),
        ('{"id": 1}', ":2 is not an override"),
        (" " * 4_200_000 + "{}", ":2 has more than 4194304 bytes"),
        ('{"id": "b", "scope": "a/b", "action": "deny", "reason": "x"}', ":2: http"),
        ('{"id": "b/c", "scope": "b", "action": "deny", "reason": "x"}', "answers 4"),
    ],
)
async def test_import_names_the_line_that_is_refused(
    line: str, said: str, store_url: str, store_client: Redis, tmp_path: Path
) -> None:
    good = '{"id": "a", "scope": "a.example", "action": "deny", "reason": "x"}'
    (tmp_path / "file").write_text(f"{good}\n{line}\n")
    async with service(store_url) as url:
        ended = await operate("import", str(tmp_path / "file"), "--server", url)
    assert (ended.code, ended.out) == (3, "")
    assert said in ended.err


async def test_import_needs_a_file_that_can_be_read(tmp_path: Path) -> None:
    ended = await operate("import", str(tmp_path))
    assert (ended.code, ended.out) == (3, "")
    assert "Cannot read " in ended.err


async def test_text_of_an_override_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"\xe9")
    for name, said in (("latin", "is not UTF-8, as the text of an override must be."), ("none", "Cannot read ")):
        robots = ("--scope", "h.example", "--action", "robots", "--robots", str(tmp_path / name))
        ended = await run("overrides", "set", "one", *robots, *WHY)
        assert (ended.code, ended.out) == (3, "")
        assert said in ended.err
    assert READ_LIMIT > BODY_LIMIT
