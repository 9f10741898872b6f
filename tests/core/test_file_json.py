"""A whole file as JSON: what the schema of `GET /v1/robots` describes, for any bytes."""

import json

from hypothesis import given
from hypothesis import strategies as st

from app.api.answers.file_schema import RobotsFileOut
from robots_core.file_json import file_json
from robots_core.lint.linter import lint
from robots_core.robots.agents import Agent, read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.robots_txt import RobotsTxt
from tests.robots.bodies import ANY

FACTS = {"robots": {"url": "https://h/robots.txt", "source": "memory"}, "dialect": "rfc9309", "version": None}
AGENTS = [None, *map(read_agent, ("*", "Googlebot-News", "bingbot", "SeznamBot", "Google-Extended", "a"))]
LINES = b"""
User-agent: *
User-agent: a\xc3\xa9
Disallow: /x # why
Allow: /\xff"\\
Crawl-delay: 2
Crawl-delay: 99999999999999999999
Request-rate: 1/10s 0800-2000
Request-rate: 99999999999999999999/7d
Visit-time: 2200-0100
Content-Usage: /a train-ai=n
Content-Signal: search=yes, ai-train=no
DisallowAITraining: /
Noindex: /z
Robot-version: 2.0
Sitemap: http://h/s\xc3\xa9.xml
License: https://h/license
Host: h.example
\x01: \x02\x7f
no colon
"""


def check(body: bytes, dialect: str, agent: Agent | None) -> None:
    members = json.loads(file_json(body, dialect, agent, "text/html", "https://h", truncated=False))
    names = [name for name in RobotsFileOut.model_fields if name not in FACTS]
    assert list(members) == names
    model = RobotsFileOut.model_validate(FACTS | members)
    assert {name: model.model_dump(mode="json")[name] for name in names} == members
    robots = RobotsTxt(body)
    groups = robots.reading(DIALECTS[dialect]).groups
    assert [group["line"] for group in members["groups"]] == [group.line for group in groups]
    assert len(members["warnings"]) == len(lint(robots, "text/html", "https://h"))


@given(ANY, st.sampled_from([*DIALECTS]), st.sampled_from(AGENTS))
def test_any_file_matches_the_schema(body: bytes, dialect: str, agent: Agent | None) -> None:
    check(body, dialect, agent)


@given(st.permutations(LINES.splitlines(keepends=True)), st.sampled_from([*DIALECTS]), st.sampled_from(AGENTS))
def test_every_kind_of_line_matches_the_schema(lines: list[bytes], dialect: str, agent: Agent | None) -> None:
    check(b"User-agent: *\n" + b"".join(lines), dialect, agent)
