"""A change says which agents lost or gained which paths, within bounds."""

from app.cache.freshness import Snapshot
from app.history.change import CHANGE_BYTES, NAMED_AGENTS, PATHS, Change, change_of
from robots_core.origin import Origin
from robots_core.robots.access import Access, Successful, Unavailable

SITE = Origin("https", "www.example.com", 443)


def file(text: str) -> Successful:
    return Successful(200, text.encode())


def change(before: Access, after: Access | None, *, forbidden: bool = False) -> Change:
    return change_of(
        SITE, Snapshot(before, 100.0), None if after is None else Snapshot(after, 200.0), forbidden=forbidden
    )


def test_agents_with_lost_and_gained_paths_are_named() -> None:
    found = change(
        file("User-agent: a\nDisallow: /old\n\nUser-agent: b\nDisallow: /b\n"),
        file("User-agent: a\nDisallow: /new\n\nUser-agent: b\nDisallow: /b\n"),
    )
    [agents] = found.agents
    assert agents.agents == ["a"]
    assert (agents.lost, agents.lost_paths) == (["/new"], 1)
    assert (agents.gained, agents.gained_paths) == (["/old"], 1)
    assert (agents.rates, agents.more_agents, found.truncated) == (False, 0, False)


def test_a_path_that_is_lost_behind_the_end_of_a_pattern_is_reported() -> None:
    [agents] = change(file("User-agent: *\nDisallow: /$\n"), file("User-agent: *\nDisallow: /\n")).agents
    assert (agents.agents, agents.lost, agents.gained) == (["*"], ["/x"], [])
    [agents] = change(
        file("User-agent: SeznamBot\nDisallow: /p$\n"), file("User-agent: SeznamBot\nDisallow: /p\n")
    ).agents
    assert (agents.agents, agents.lost) == (["SeznamBot"], ["/px"])


def test_crawlers_that_go_by_the_group_of_another_are_named_behind_it() -> None:
    [agents] = change(file("User-agent: Yandex\nDisallow: /q\n"), file("User-agent: Yandex\nDisallow: /\n")).agents
    assert agents.agents[0] == "Yandex"
    assert "YandexBot" in agents.agents


def test_a_changed_rate_is_reported() -> None:
    [agents] = change(file("User-agent: *\nCrawl-delay: 1\n"), file("User-agent: *\nCrawl-delay: 9\n")).agents
    assert (agents.agents, agents.lost_paths, agents.rates) == (["*"], 0, True)


def test_a_comment_changes_nothing_for_agents() -> None:
    found = change(file("User-agent: *\nDisallow: /a\n"), file("User-agent: *\nDisallow: /a # why\n"))
    assert found.agents == []
    assert found.from_ != found.to


def test_a_site_that_closes_with_its_file_or_loses_it() -> None:
    closed = file("User-agent: *\nDisallow: /\n")
    [agents] = change(Unavailable(404), closed).agents
    assert (agents.agents, agents.lost) == (["*"], ["/"])
    [agents] = change(closed, Unavailable(404)).agents
    assert (agents.agents, agents.gained) == (["*"], ["/"])
    assert change(closed, Unavailable(403), forbidden=True).agents == []


def test_a_purged_file_has_no_next_version() -> None:
    found = change(file("Disallow: /"), None)
    assert (found.to, found.agents) == (None, [])


def test_a_change_is_bounded() -> None:
    many = "".join(f"User-agent: agent-{n}-{'x' * 80}\nDisallow: /{n}/{'y' * 150}\n" for n in range(500))
    found = change(file(""), file(many))
    assert len(found.model_dump_json()) <= CHANGE_BYTES
    assert found.truncated
    same = "".join(f"User-agent: agent-{n}\n" for n in range(100))
    paths = "".join(f"Disallow: /{n}\n" for n in range(100))
    [agents] = change(file(""), file(same + paths)).agents
    assert (len(agents.agents), agents.more_agents) == (NAMED_AGENTS, 100 - NAMED_AGENTS)
    assert (len(agents.lost), agents.lost_paths) == (PATHS, 100)


def test_an_expensive_comparison_is_truncated() -> None:
    stars = "".join(f"Disallow: /{'*a' * 200}{n}\n" for n in range(300))
    found = change(file("User-agent: *\nDisallow: /a\n"), file("User-agent: *\n" + stars))
    assert found.truncated
    assert not change(file("User-agent: *\nDisallow: /a\n"), file("User-agent: *\n" + stars[:8000])).truncated
