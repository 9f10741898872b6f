"""Every known crawler and every dialect by every real file: nothing raises.

Lint warnings of all real files are in tests/lint/test_real_files.py.
"""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.cache.freshness import Freshness, Snapshot, State
from app.cache.result import CacheResult, Source
from app.decisions.evaluate import CachedFile, Question, evaluate, judge_every_purpose
from robots_core import read
from robots_core.diff import changes
from robots_core.lint.linter import lint
from robots_core.origin import read_target
from robots_core.purposes.judge import PurposeState
from robots_core.robots.access import Successful
from robots_core.robots.agents import STAR, Agent, first_of, known_agents, read_agent
from robots_core.robots.dialects import DIALECTS, Dialect
from robots_core.robots.explain import explain
from robots_core.robots.lines import Key, codes_of
from robots_core.robots.robots_txt import RobotsTxt
from robots_core.robots.verdict import Permission, Reason
from tests.corpus import real_files
from tests.robots.judging import AGENT

NOW = datetime(2026, 11, 21, 18, 30, tzinfo=UTC)
TARGET = read_target("https://h.example/a/b.html?c=d")
AGENT_LINES = codes_of({Key.USER_AGENT})
ANYONE = [read_agent(STAR), AGENT]


def has_own_shape(agent: Agent) -> bool:
    """Whether its groups are not looked up by its own token and then `*`, or its terms are not those of its group."""
    return agent.chain != (agent.token.lower(),) or not agent.star or agent.star_delay


SHAPES = [agent for agent in known_agents().values() if has_own_shape(agent)]


def by_token() -> Mapping[str, list[Agent]]:
    """The known crawlers by each token of their chains."""
    found: dict[str, list[Agent]] = {}
    for agent in known_agents().values():
        for token in agent.chain:
            found.setdefault(token, []).append(agent)
    return found


BY_TOKEN = by_token()


def named_in(robots: RobotsTxt) -> Iterator[Agent]:
    """The known crawlers that the file names, and two of them as one."""
    lines = robots.scan.directives(robots.positions(AGENT_LINES))
    tokens = dict.fromkeys(line.text.lower() for line in lines)
    named = [agent for token in tokens for agent in BY_TOKEN.get(token, ())]
    yield from named
    if len(named) > 1:
        yield first_of([named[0], named[-1]])


def check(robots: RobotsTxt, dialect: Dialect, agent: Agent) -> None:
    """Decide, and read all that an answer can say."""
    cached = CacheResult(
        Snapshot(Successful(200, robots.body), 0.0), Freshness(0.0, State.FRESH, 0.0, stale=False), Source.MEMORY
    )
    question = Question(TARGET, agent, dialect, NOW)
    decision = evaluate(question, CachedFile(cached, robots), NOW.timestamp(), forbidden=False)
    assert decision.verdict.permission is not Permission.DEFER
    assert decision.verdict.reason is not Reason.TOO_COMPLEX
    rate, delay = decision.rate, decision.crawl_delay
    assert rate is None or rate.value is None or rate.value.interval >= 0
    assert delay is None or delay >= 0
    assert decision.valid_until is None or decision.valid_until > NOW
    states = {judgement.state for judgement in judge_every_purpose(decision).by_purpose.values()}
    assert decision.allowed or states == {PurposeState.NO}
    assert decision.allowed or decision.usage is None or not decision.usage.content_usage


def sweep(robots: RobotsTxt) -> int:
    """Ask as every crawler with a shape of its own and every one that the file names; the number of answers."""
    asked = 0
    agents = dict.fromkeys([*ANYONE, *SHAPES, *named_in(robots)])
    for dialect in DIALECTS.values():
        reading = robots.reading(dialect)
        # An answer depends on the crawler by the groups that it selects, and by whether it inherits a delay.
        seen: set[tuple[str | None, bool]] = set()
        for agent in agents:
            selection = reading.select(agent)
            shape = None if selection is None else selection.token, agent.star_delay
            if shape not in seen:
                seen.add(shape)
                check(robots, dialect, agent)
                assert len(explain(robots, dialect, agent, TARGET.path, limit=1).rules) <= 1
            asked += 1
    return asked


def has_star(robots: RobotsTxt) -> bool:
    return robots.reading(DIALECTS["rfc9309"]).select(AGENT) is not None


def test_shapes_of_all_kinds_are_asked() -> None:
    assert any(len(agent.chain) > 1 for agent in SHAPES)
    assert any(not agent.star for agent in SHAPES)
    assert any(agent.star_delay for agent in SHAPES)
    assert {agent.dialect for agent in SHAPES} >= {"rfc9309", "google"}


def test_every_real_file_answers_every_crawler_in_every_dialect() -> None:
    asked = sum(sweep(RobotsTxt(body)) for body in set(real_files().values()))
    assert asked > 100_000


def test_every_kind_of_real_file_can_be_compared() -> None:
    files = [RobotsTxt(body) for body in real_files().values()]
    # A comparison asks as each agent that a file names: all files without `*`, and some of the others.
    pairs = [pair for pair in pairwise(files) if not all(map(has_star, pair)) and max(map(lines_of, pair)) < 500]
    pairs += list(pairwise(files))[::40]
    assert len(pairs) > 200
    for number, (before, after) in enumerate(pairs):
        dialect = list(DIALECTS.values())[number % len(DIALECTS)]
        assert changes(read(before.body), read(after.body), dialect.name).agents is not None


def lines_of(robots: RobotsTxt) -> int:
    return robots.scan.lines.count


NAMES = st.sampled_from(
    [*[agent.token for agent in SHAPES if agent.star_delay] * len(SHAPES), *(agent.token for agent in SHAPES)]
)
GROUPS_WITHOUT_STAR = st.lists(
    st.tuples(
        st.lists(NAMES, min_size=1, max_size=3),
        st.lists(
            st.sampled_from(
                [
                    "Disallow: /a",
                    "Allow: /",
                    "Crawl-delay: 5",
                    "Request-rate: 1/5s 0600-0800",
                    "Visit-time: 0600-0845",
                    "Content-Signal: ai-train=no",
                    "Content-Usage: train-ai=n",
                    "DisallowAITraining: /a",
                    "Robot-version: 2.0",
                    "Crawl-delay: soon",
                    "",
                ]
            ),
            max_size=4,
        ),
    ),
    min_size=1,
    max_size=4,
)


@given(GROUPS_WITHOUT_STAR)
def test_small_files_without_a_star_group_answer_everybody(groups: list[tuple[list[str], list[str]]]) -> None:
    lines = [line for names, own in groups for line in [*(f"User-agent: {name}" for name in names), *own]]
    robots = RobotsTxt("\n".join(lines).encode())
    assert not has_star(robots)
    sweep(robots)
    lint(robots)
    for dialect in DIALECTS.values():
        found = changes(read(b""), read(robots.body), dialect.name)
        assert not found.truncated
