"""Notes about how an agent was read (spec C2, C13)."""

import pytest

from robots_core.notes import AGENT_MISSPELT, AGENT_NEVER_NAMED, AGENT_UNNAMED, agent_notes
from robots_core.robots.agents import STAR, agent_of, first_of, known_agents, read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.robots_txt import RobotsTxt

BROWSER = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36"


def codes(*names: str, dialect: str = "rfc9309") -> list[str]:
    return [note.code for note in agent_notes(first_of([read_agent(name) for name in names]), DIALECTS[dialect])]


def test_a_guess_is_noted() -> None:
    (note,) = agent_notes(read_agent(BROWSER), DIALECTS["rfc9309"])
    assert note.code == AGENT_UNNAMED
    assert "Mozilla" in note.message
    assert codes("Mozilla") == codes(STAR) == codes("ExampleBot/1.0 (+https://www.example.com/bot.html)") == []
    assert codes("ExampleBot", BROWSER) == [AGENT_UNNAMED]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_agent_that_no_line_can_name_is_noted(dialect: str) -> None:
    """For every known agent: the note is there if, and only if, a group with its own name does not bind it."""
    reader = DIALECTS[dialect]
    for agent in known_agents().values():
        reading = RobotsTxt(f"User-agent: {agent.token}\nDisallow: /".encode()).reading(reader)
        bound = reading.select(agent) is not None
        assert [note.code for note in agent_notes(agent, reader)] == ([] if bound else [AGENT_NEVER_NAMED]), agent.token


def test_the_note_says_how_the_line_is_read() -> None:
    (note,) = agent_notes(read_agent("MJ12bot"), DIALECTS["google"])
    assert "'User-agent: mj12bot' is read as 'mj'" in note.message
    assert "rfc9309" in note.message
    (note,) = agent_notes(read_agent("360Spider"), DIALECTS["google"])
    assert "as no name" in note.message
    assert codes("ExampleBot", "MJ12bot", dialect="google") == [AGENT_NEVER_NAMED]
    assert codes("ExampleBot", STAR, dialect="google") == []


def test_every_known_crawler_is_named_only_where_it_is_misspelt() -> None:
    known = known_agents()
    for name, agent in known.items():
        misspelt = f"{name[:-2]}{name[-1]}{name[-2]}"
        if len(name) < 6 or misspelt == name or misspelt in known or not name.isalpha():
            continue
        (note,) = agent_notes(read_agent(misspelt), DIALECTS["rfc9309"])
        assert (note.code, agent.token in note.message) == (AGENT_MISSPELT, True), name
    own = {"googelbot": agent_of("Googelbot", {})}
    assert list(agent_notes(read_agent("Googelbot", own), DIALECTS["rfc9309"])) == []
    assert codes("GPT-Bot") == codes("gogglebot/2.1") == codes("ClaudeBots") == [AGENT_MISSPELT]
    assert codes("ExampleBot") == codes("bot") == codes("Yandex") == []


@pytest.mark.parametrize(
    ("name", "meant"), [("Google", "Googlebot"), ("Bing", "bingbot"), ("Baidu", "Baiduspider"), ("all", "*")]
)
def test_a_name_of_an_operator_hints_at_its_crawler(name: str, meant: str) -> None:
    (note,) = agent_notes(read_agent(name), DIALECTS["rfc9309"])
    assert (note.code, note.message) == (
        AGENT_MISSPELT,
        f"No crawler {name} is known. Ask for {meant} if that is meant.",
    )
