"""`python -m app agents`, `settings`, `overrides` and `--version`."""

import json
from pathlib import Path

from httpx import AsyncClient

from app import __version__
from app.settings import Settings
from robots_core.agents.directory import AgentCategory, builtin_directory
from tests.cli.command import run
from tests.cli.serving import service
from tests.operator_token import TOKEN_FILE, TOKEN_HEADER

TOKEN = {"ROBOTS_API_KEY": TOKEN_FILE.read_text().strip()}


async def test_version_is_printed() -> None:
    ended = await run("--version")
    assert (ended.code, ended.out) == (0, f"robots-decisions-server {__version__}\n")


async def test_agents_lists_the_directory_by_category() -> None:
    ended = await run("agents")
    assert [line.split()[0] for line in ended.out.splitlines()] == [it.agent.token for it in builtin_directory().rows]
    of_category = json.loads((await run("agents", "--category", "ai-training", "--json")).out)["agents"]
    expected = [it.agent.token for it in builtin_directory().rows if it.category is AgentCategory.AI_TRAINING]
    assert [it["token"] for it in of_category] == expected
    unknown = await run("agents", "--category", "nothing")
    assert (unknown.code, unknown.out) == (3, "")


SECRET = "0123456789abcdef0123456789abcdef"


async def test_settings_lists_values_and_hides_secrets(tmp_path: Path) -> None:
    (tmp_path / "permit_secret").write_text(SECRET)
    chosen = {
        "SECRETS_DIR": str(tmp_path),
        "REDIS_URL": "rediss://user:pass-1@redis.example/0?sentinel_password=pass-2&sentinel_username=u",
        "WORKERS": "3",
        "ALLOW_PORTS": "81,80",
        "PURPOSES": "search",
    }
    ended = await run("settings", settings=chosen)
    assert ended.code == 0, ended.err
    rows = {line.split()[0]: line.split(maxsplit=1)[1] for line in ended.out.splitlines()}
    assert rows.keys() == {name.upper() for name in Settings.model_fields}
    assert rows["WORKERS"] == "3  (default 1)"
    assert rows["PORT"] == "8080"
    listed = json.loads((await run("settings", "--json", settings=chosen)).out)
    assert listed["ALLOW_PORTS"] == {"value": ["80", "81"], "default": []}
    assert listed["PERMIT_SECRET"]["value"] == "(hidden)"
    assert listed["REDIS_URL"]["value"].startswith("rediss://(hidden)@redis.example/0?sentinel_password=(hidden)&")
    for secret in (SECRET, "pass-1", "pass-2"):
        assert secret not in ended.out
        assert secret not in json.dumps(listed)


async def test_settings_names_an_invalid_value() -> None:
    ended = await run("settings", settings={"PORT": "many"})
    assert (ended.code, ended.out) == (3, "")
    assert "PORT=many" in ended.err


async def test_overrides_are_set_listed_and_removed(store_url: str, store_client: object, tmp_path: Path) -> None:
    file = tmp_path / "robots.txt"
    file.write_text("User-agent: *\nDisallow: /basket/\n")
    async with service(store_url) as url:
        server = ("--server", url)
        why = ("--reason", "They asked us to.")
        slow = ("--scope", "shop.example", "--action", "delay", "--delay", "30", "--agent", "ExampleBot")
        refused = await run("overrides", "list", *server)
        assert (refused.code, refused.out) == (3, "")
        assert "answers 401: Without API keys, this route needs the operator's token." in refused.err
        ended = await run(
            "overrides", "set", "slow", *slow, *why, "--expires-at", "2099-12-31T00:00:00Z", *server, settings=TOKEN
        )
        assert (ended.code, ended.err) == (0, "")
        effect = "slow  delay 30 s for examplebot on shop.example, until 2099-12-31T00:00:00Z: They asked us to. ["
        assert ended.out.startswith(effect)
        other = (
            "--scope",
            "https://other.example",
            "--action",
            "robots",
            "--robots",
            str(file),
            "--shadow",
            "--json",
        )
        ended = await run("overrides", "set", "other", *other, *why, *server, settings=TOKEN)
        assert json.loads(ended.out)["robots"] == file.read_text()
        listed = (await run("overrides", "list", *server, settings=TOKEN)).out.splitlines()
        assert [line.split()[0] for line in listed] == ["other", "slow"]
        of_url = await run("overrides", "list", "--url", "https://www.shop.example/", "--json", *server, settings=TOKEN)
        assert json.loads(of_url.out)["id"] == "slow"
        removed = await run("overrides", "remove", "slow", *server, settings=TOKEN)
        assert (removed.code, removed.out, removed.err) == (0, "", "")
        again = await run("overrides", "remove", "slow", *server, settings=TOKEN)
        assert (again.code, again.out) == (3, "")
        assert "answers 404: No override has the id 'slow'." in again.err
        bad = await run("overrides", "set", "bad", "--scope", "a/b", "--action", "deny", *why, *server, settings=TOKEN)
        assert bad.code == 3
        assert "answers 422: scope is 'a/b'" in bad.err
        assert len((await run("overrides", "list", *server, settings=TOKEN)).out.splitlines()) == 1


async def test_overrides_list_goes_on_to_the_next_page(store_url: str, store_client: object) -> None:
    async with service(store_url) as url:
        many = [f"o-{number:03}" for number in range(102)]
        async with AsyncClient(base_url=url, headers=TOKEN_HEADER) as client:
            for name in many:
                override = {"scope": f"{name}.example", "action": "deny", "reason": "x"}
                answer = await client.put(f"/v1/overrides/{name}", json=override)
                assert answer.is_success, answer.text
        listed = (await run("overrides", "list", "--server", url, settings=TOKEN)).out.splitlines()
    assert [line.split()[0] for line in listed] == many
