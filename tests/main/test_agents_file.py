"""AGENTS_FILE: what its rows mean, and errors that name the row, the field and the value."""

import subprocess
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cache.recheck import Pace
from app.fetch.profile import FetchProfile
from app.files.toml_file import read_row
from app.main.agents_file import AGENTS_FILE_LIMIT, OwnAgentRow, OwnAgents, load, read_agents
from robots_core.agents.directory import AgentCategory, builtin_directory
from robots_core.robots.agents import agent_rows
from robots_core.robots.user_agent import TOKEN

FILE = """
[agents.ExampleBot]
operator = "Example"
category = "ai-search"
documentation = "https://www.example.com/bot"
chain = ["ExampleBot-News", "Googlebot"]
dialect = "google"
recheck = "seznam"
star = false
star_delay = true
crawl_delay = true
policy = true
exempt = true
floor = "2s"
cap = 60

[agents.PlainBot]
[agents.googlebot]
chain = ["PlainBot"]
floor = 5
"""

PROFILE = '[profiles.acme]\nuser_agent = "AcmeBot/2.0"\nfrom = "bot@example.com"\n'


def read(text: str) -> OwnAgents:
    return read_agents(text, Path("/nowhere"))


def test_a_row_says_how_its_crawler_is_read() -> None:
    own = read(FILE)
    agent = own.directory.read("ExampleBot/2.0 (+https://www.example.com/bot)")
    assert agent.chain == ("examplebot", "examplebot-news", "googlebot")
    assert (agent.token, agent.dialect, agent.recheck, agent.crawl_delay) == ("ExampleBot", "google", "seznam", True)
    assert (agent.star, agent.star_delay, agent.policy, agent.exempt) == (False, True, True, True)
    assert own.paces == {"examplebot": Pace(2.0, 60.0), "googlebot": Pace(5.0, None)}
    row = next(row for row in own.directory.rows if row.agent is agent)
    assert (row.operator, row.category, row.documentation) == (
        "Example",
        AgentCategory.AI_SEARCH,
        "https://www.example.com/bot",
    )
    assert row.own
    assert "ExampleBot" in own.directory.expand("@ai-search")


def test_a_row_without_fields_is_read_as_an_unknown_crawler_is() -> None:
    plain = read(FILE).directory.read("plainbot")
    unknown = builtin_directory().read("PlainBot")
    assert plain == replace(unknown, unlisted=False)


def test_a_row_replaces_the_one_of_the_same_token() -> None:
    directory = read(FILE).directory
    assert directory.read("Googlebot/2.1").chain == ("googlebot", "plainbot")
    assert [row.agent.token for row in directory.rows if row.agent.token.lower() == "googlebot"] == ["googlebot"]
    assert len(directory.rows) == len(builtin_directory().rows) + 2
    assert builtin_directory().read("Googlebot").dialect == "google"
    assert directory.read("Googlebot-News") == builtin_directory().read("Googlebot-News")


def test_a_row_names_a_profile_of_the_file() -> None:
    own = read(f'agents.AcmeBot.profile = "acme"\n{PROFILE}')
    assert own.directory.read("AcmeBot").profile == "acme"
    assert own.directory.read("Googlebot").profile is None
    assert own.profiles == {"acme": FetchProfile("AcmeBot/2.0", "bot@example.com")}
    assert (own.directory.profile("acme"), own.directory.profile("default")) == ("acme", None)


def test_an_empty_file_adds_nothing() -> None:
    assert list(read("").directory.rows) == list(builtin_directory().rows)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("agents = ", "^it is not TOML"),
        ("agents = 1", "it has agents = 1"),
        ("[agent.A]", "it has an unknown field 'agent'; the fields are agents, profiles"),
        ("agents.A = 1", "the agent 'A' has 1, where a table of chain, dialect"),
        ('[agents."A/1"]', "the agent 'A/1' is not a product token"),
        (f"[agents.{'A' * 65}]", "is not a product token"),
        ("[agents.A]\n[agents.a]", "the agents 'A' and 'a' are the same"),
        ("agents.A.chian = []", "the agent 'A' has an unknown field 'chian'; the fields are chain"),
        ('agents.A.chain = "B"', "the agent 'A' has chain = 'B'"),
        ('agents.A.chain = ["B", "C D"]', r"the agent 'A' has chain.1 = 'C D'; a product token is"),
        ("agents.A.chain = [1]", r"the agent 'A' has chain.0 = 1"),
        (f"agents.A.chain = {['b'] * 17}", "the agent 'A' has chain = "),
        ('agents.A.dialect = "latin"', "the agent 'A' has dialect = 'latin'; expected one of rfc9309, google"),
        ('agents.A.recheck = "weekly"', "the agent 'A' has recheck = 'weekly'; expected 'rfc9309' or 'seznam'"),
        ('agents.A.category = "bots"', "the agent 'A' has category = 'bots'; expected 'search'"),
        ('agents.A.star = "no"', "the agent 'A' has star = 'no'"),
        ('agents.A.documentation = "example.com"', "the agent 'A' has documentation = 'example.com'"),
        ('agents.A.operator = ""', "the agent 'A' has operator = ''"),
        ('agents.A.operator = "a\\nb"', r"the agent 'A' has operator = 'a\\nb'"),
        ('agents.A.floor = "fast"', "the agent 'A' has floor = 'fast'; expected seconds"),
        ("agents.A.floor = 86401", "the agent 'A' has floor = 86401; a pace lies between 0 seconds and a day"),
        ("agents.A = {floor = 2, cap = 1}", "the agent 'A' has floor = 2 s, more than cap = 1 s"),
        ('agents.A.profile = "acme"', "the agent 'A' has profile = 'acme'; the file has no profiles"),
        (f'agents.A.profile = "akme"\n{PROFILE}', "the agent 'A' has profile = 'akme'; the profiles are acme"),
        ("agents.A.profile = 1", "the agent 'A' has profile = 1"),
        ("[profiles.default]", "the profile 'default' has an invalid name; use 1 to 32 letters"),
        ('[profiles."a b"]', "the profile 'a b' has an invalid name"),
        (f"[profiles.{'a' * 33}]", "has an invalid name"),
        ("[profiles.acme]", "the profile 'acme' has no user_agent"),
        ("profiles.acme = 1", "the profile 'acme' has 1, where a table of user_agent, from, signature_agent"),
        ('profiles.acme = {user_agent = "bücher"}', "the profile 'acme' has user_agent = 'bücher'"),
        ('profiles.acme = {user_agent = "a\\nb"}', r"the profile 'acme' has user_agent = 'a\\nb'"),
        ('profiles.acme = {user_agent = "a", from = "nobody"}', "the profile 'acme' has from = 'nobody'"),
        (
            'profiles.acme = {user_agent = "a", From = "a@b"}',
            "the profile 'acme' has an unknown field 'From'",
        ),
        ("\n".join(f"[profiles.p{number}]" for number in range(1001)), "it has 1001 profiles; at most 1000"),
        ("\n".join(f"[agents.A{number}]" for number in range(1001)), "it has 1001 agents; at most 1000"),
        ("agents.A.chain = " + "[" * 5000, "^it is not a file of agents: its values are nested too deeply"),
    ],
)
def test_an_invalid_file_is_named_by_row_field_and_value(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(text)


def test_a_file_that_is_too_long_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "agents.toml"
    path.write_text("#" * (AGENTS_FILE_LIMIT + 1))
    with pytest.raises(ValueError, match=f"longer than {AGENTS_FILE_LIMIT} bytes"):
        load(path)


def test_rows_of_agents_toml_are_valid() -> None:
    names = {"source", "source_date", "operator", *OwnAgentRow.model_fields} - {"floor", "cap", "profile"}
    for operator, token, row in agent_rows():
        assert TOKEN.fullmatch(token)
        assert row.keys() <= names, token
        facts = {name: value for name, value in row.items() if name not in ("source", "source_date")}
        read_row(OwnAgentRow, {"operator": operator, **facts}, "the agent")
        assert {type(row["source"]), type(row["source_date"])} == {str, date}


NEW_ATTRIBUTE = """
import sys
from importlib.util import find_spec, module_from_spec
from pathlib import Path

spec = find_spec("robots_core.robots.agents")
source = Path(spec.origin).read_text()
assert source.count("    policy: bool") == 1
added = "    loud: bool = field(default=False, metadata=says('Loud.'))\\n"
source = source.replace("    policy: bool", added + "    policy: bool")
module = sys.modules[spec.name] = module_from_spec(spec)
exec(compile(source, spec.origin, "exec"), module.__dict__)

from app.main.agents_file import read_agents
from app.api.routes.agents import AgentsOut, agents_out
from robots_core.robots.agents import first_of

directory = read_agents("agents.LoudBot.loud = true", Path("/")).directory
loud, other = directory.read("LoudBot"), directory.read("Googlebot")
assert (loud.loud, other.loud, first_of([loud, other]).loud) == (True, False, True)
rows = {row["token"]: row for row in agents_out(directory, None).model_dump(mode="json")["agents"]}
assert (rows["LoudBot"]["loud"], rows["Googlebot"]["loud"]) == (True, False)
schema = AgentsOut.model_json_schema(mode="serialization")["$defs"]["KnownAgentOut"]
assert schema["properties"]["loud"]["description"] == "Loud."
assert "loud" in schema["required"]
"""


def test_a_new_attribute_of_agents_is_described_once() -> None:
    ended = subprocess.run([sys.executable, "-c", NEW_ATTRIBUTE], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


FIELDS = "operator|category|chain|dialect|recheck|star|floor|cap|documentation"


@given(st.text(max_size=60) | st.from_regex(rf'agents\.[A-z]{{1,3}}\.({FIELDS}) = ("[a-z0-9]*"|\[.*\]|[0-9.e+]*)'))
def test_any_text_can_be_read(text: str) -> None:
    with suppress(ValueError):
        assert read(text).directory.read("Googlebot").token
