"""RFC 9309 2.1 and 2.2.1, spec B8 to B15, C and E2: grouping lines, and the groups that bind an agent."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robots_core.robots.access import BODY_LIMIT
from robots_core.robots.agents import STAR, Agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.groups import FirstRecord, Groups, MergedGroups, tokens_of
from robots_core.robots.lines import Directive, Key, key_of, scan
from robots_core.robots.verdict import Permission
from tests.robots.bodies import ANY, VALUES
from tests.robots.judging import ask
from tests.robots.naive import READERS, ReadGroup, grouped, read_groups, read_lines, read_token

ALPHABETS = {"A-Za-z0-9_-": DIALECTS["rfc9309"].token, "A-Za-z_-": DIALECTS["google"].token}
EVERY = pytest.mark.parametrize("dialect", DIALECTS)


def groups_of(body: bytes, dialect: str = "rfc9309") -> Groups:
    return Groups(scan(body), DIALECTS[dialect].grammar)


def asking(*names: str, star: bool = True) -> Agent:
    return Agent(names[0] if names else STAR, names or (STAR,), chain=names, star=star)


@pytest.mark.parametrize("body", [b"Dissallow /x", b"Dissallow: /x", b"Disallow /x", b"Disallow-all: /x"])
def test_b5_b6_the_draft_accepts_only_proper_keys(body: bytes) -> None:
    [group] = groups_of(b"User-agent: *\n" + body, "draft1996")
    assert not group.rules


@EVERY
def test_b6_only_google_accepts_rules_by_prefix(dialect: str) -> None:
    [group] = groups_of(b"User-agent: *\nDisallow-all: /\nAllowAITraining: /a\nDisallowAITraining: /b", dialect)
    rules = ((2, Key.DISALLOW, b"/"), (3, Key.ALLOW, b"/a"), (4, Key.DISALLOW, b"/b"))
    assert group.rules == (rules if dialect == "google" else ())


@EVERY
def test_i5_a_training_line_ends_only_googles_run_of_agents(dialect: str) -> None:
    groups = groups_of(b"User-agent: a\nDisallowAITraining: /\nUser-agent: b\nDisallow: /", dialect)
    assert [group.agents for group in groups] == ([(b"a",), (b"b",)] if dialect == "google" else [(b"a", b"b")])


@EVERY
@pytest.mark.parametrize("line", [b"Crawl-delay: 5", b"Request-rate: 1/5", b"Visit-time: 0-1", b"Content-Signal: a=b"])
def test_b9_x3_a_member_ends_a_run_of_agents_in_seznam(dialect: str, line: bytes) -> None:
    groups = groups_of(b"User-agent: a\n" + line + b"\nUser-agent: b\nDisallow: /", dialect)
    apart = dialect in ("seznam", "v2")
    assert [group.agents for group in groups] == ([(b"a",), (b"b",)] if apart else [(b"a", b"b")])


@EVERY
def test_b8_e5_only_the_draft_ends_records_at_blank_lines(dialect: str) -> None:
    groups = groups_of(b"User-agent: a\n#\nDisallow: /1\n\nDisallow: /2", dialect)
    rules = [(3, Key.DISALLOW, b"/1"), (5, Key.DISALLOW, b"/2")]
    assert list(groups.pick([0])[0].rules) == rules[: 1 if dialect == "draft1996" else 2]
    assert list(groups.orphans) == (rules[1:] if dialect == "draft1996" else [])


@EVERY
def test_b10_i8_lines_above_the_first_agent_bind_no_agent(dialect: str) -> None:
    groups = groups_of(b"Disallow: /a\nCrawl-delay: 9\nSitemap: http://h/\nUser-agent: *\nDisallow: /b", dialect)
    assert [line.line for line in groups.orphans] == [1, 2]
    assert [rule.value for rule in groups.pick([0])[0].rules] == [b"/b"]


def test_g11_a_member_line_is_kept_with_its_group() -> None:
    [group] = groups_of(b"User-agent: a\nCrawl-delay: 5\nUser-agent: b\nDisallow: /")
    assert group.agents == (b"a", b"b")
    assert group.members == ((2, Key.CRAWL_DELAY, b"5"),)


@pytest.mark.parametrize(
    ("body", "version_2"),
    [
        (b"User-agent: a\nRobot-version: 2.0\nDisallow: /", True),
        (b"User-agent: a\n# c\n\nRobot-version: 2\nDisallow: /", True),
        (b"User-agent: a\nRobot-version: 2.0.1", True),
        (b"User-agent: a\nRobot-version: 2.0.123456789", True),
        (b"User-agent: a\nRobot-version: 2.0.1234567890", False),
        (b"User-agent: a\nRobot-version: 2.0.", False),
        (b"User-agent: a\nRobot-version: 1.0\nRobot-version: 2.0", False),
        (b"User-agent: a\nRobot-version: 2.1", False),
        (b"User-agent: a\nDisallow: /\nRobot-version: 2.0", False),
        (b"User-agent: a\nCrawl-delay: 1\nRobot-version: 2.0", False),
        (b"User-agent: a\nSitemap: /s\nRobot-version: 2.0", True),
    ],
)
def test_f12_a_version_counts_directly_below_the_agents(body: bytes, version_2: bool) -> None:
    [group] = groups_of(body, "seznam")
    assert group.version_2 is version_2


@EVERY
@given(body=ANY)
def test_any_bytes_are_grouped_as_by_the_reference(dialect: str, body: bytes) -> None:
    assert grouped(groups_of(body, dialect)) == read_groups(read_lines(body), READERS[dialect])


@given(st.lists(VALUES.map(lambda it: it.encode("latin-1")) | st.binary(max_size=20), max_size=5))
def test_c2_c3_a_value_is_cut_where_a_token_ends(values: list[bytes]) -> None:
    lines = scan(b"\n".join(b"User-agent: " + value for value in values)).lines
    found = lines.values([place for place in range(len(lines)) if key_of(lines.codes[place])[0] is Key.USER_AGENT])
    for alphabet, token in ALPHABETS.items():
        assert tokens_of(found, token) == [read_token(value, alphabet) for value in found]


AGENTS = [asking(), asking("foo"), asking("a", "foo"), asking("1a", "zz", star=False), asking("_-")]


def below(group: ReadGroup, first: int) -> list[Directive]:
    """The members of a group below one of its User-agent lines."""
    return [directive for directive, listed in group.members if listed > first]


@EVERY
@given(body=ANY)
def test_2_2_1_every_agent_finds_the_groups_that_name_it(dialect: str, body: bytes) -> None:
    plain = read_groups(read_lines(body), READERS[dialect])[0]
    groups = groups_of(body, dialect)
    for alphabet, cut in ALPHABETS.items():
        tokens = [[read_token(value, alphabet) for value in group.agents] for group in plain]
        for newest in (False, True):
            merged = MergedGroups(groups, cut, version_2=newest)
            for agent in AGENTS:
                chain = [*agent.chain, *([STAR] if agent.star else [])]
                token = next((token for token in chain if any(token in named for named in tokens)), None)
                assert merged.token(agent) == token
                if token is None:
                    continue
                places = [at for at, named in enumerate(tokens) if token in named]
                if newest:
                    places = [at for at in places if plain[at].version_2] or places
                assert merged.groups(token) == groups.pick(places)
                expected = [it for at in places for it in below(plain[at], tokens[at].index(token))]
                assert groups.scan.directives(merged.members(token)) == tuple(expected)


def first_holding(records: Sequence[ReadGroup], name: str) -> tuple[int, int] | None:
    """The first record with the name in a User-agent line, and the number of that line in it."""
    for at, record in enumerate(records):
        for number, value in enumerate(record.agents):
            if value == b"*" if name == STAR else name.encode() in value.lower():
                return at, number
    return None


@given(body=ANY)
def test_e2_the_first_record_that_holds_a_name_binds_its_agent(body: bytes) -> None:
    plain = read_groups(read_lines(body), READERS["draft1996"])[0]
    groups = groups_of(body, "draft1996")
    records = FirstRecord(groups)
    for agent in AGENTS:
        names = [*agent.names, STAR]
        token = next((name for name in names if first_holding(plain, name) is not None), None)
        assert records.token(agent) == token
        found = first_holding(plain, token) if token else None
        if token is not None and found is not None:
            at, number = found
            assert records.groups(token) == groups.pick([at])
            assert groups.scan.directives(records.members(token)) == tuple(below(plain[at], number))


_WORDS = [b"%x" % number for number in range(5000)]
LARGE = {
    "groups of one agent": b"User-agent:*\nAllow:/\n" * 5000,
    "agents": b"".join(b"User-agent:%b\n" % word for word in _WORDS),
    "groups": b"".join(b"User-agent:%b\nAllow:/\n" % word for word in _WORDS),
    "one agent line": b"User-agent:" + b"a" * BODY_LIMIT,
    "members": b"User-agent:*\n" + b"Crawl-delay:1\n" * 5000,
}


@pytest.mark.parametrize("dialect", ["rfc9309", "draft1996"])
@pytest.mark.parametrize("name", LARGE)
def test_large_files_are_grouped_as_by_the_reference(name: str, dialect: str) -> None:
    groups = groups_of(LARGE[name], dialect)
    plain = read_groups(read_lines(LARGE[name]), READERS[dialect])[0]
    assert [(it.line, it.agents, it.rules) for it in groups] == [(it.line, it.agents, it.rules) for it in plain]
    merged = MergedGroups(groups, ALPHABETS["A-Za-z0-9_-"])
    named: dict[str, list[int]] = {}
    for group in plain:
        for token in {read_token(value, "A-Za-z0-9_-") for value in group.agents} - {""}:
            named.setdefault(token, []).append(group.line)
    for token, expected in [*named.items()][:: 1 + len(named) // 100]:
        assert merged.token(asking(token)) == token
        assert [group.line for group in merged.groups(token)] == expected


def test_a_group_is_the_same_object_for_every_agent() -> None:
    groups = groups_of(b"User-agent: a\nUser-agent: b\nUser-agent: A/1\nDisallow: /x\nUser-agent: A\nDisallow: /y")
    merged = MergedGroups(groups, ALPHABETS["A-Za-z0-9_-"])
    first, second = groups
    assert merged.groups("b") == (first,)
    assert merged.groups("a") == (first, second)
    assert len({first, second, *groups}) == 2


@EVERY
def test_f12_groups_of_version_2_replace_those_of_1(dialect: str) -> None:
    robots = "User-agent: SeznamBot\nDisallow: /a\n\nUser-agent: SeznamBot\nRobot-version: 2.0\nDisallow: /b*\n"
    agent = asking("seznambot")
    closed = [path for path in ("/a/x", "/b/x") if ask(robots, path, dialect, agent).permission is Permission.DISALLOW]
    expected = {"seznam": ["/b/x"], "v2": ["/b/x"], "draft1996": ["/a/x"]}
    assert closed == expected.get(dialect, ["/a/x", "/b/x"])
