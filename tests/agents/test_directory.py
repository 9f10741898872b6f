"""The directory of known crawlers: every row has its facts, categories name rows, and proposals are rows."""

import json
import tomllib
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from robots_core.agents.directory import AgentCategory, UnknownCategory, builtin_directory, read_category
from robots_core.robots.agents import agent_rows, known_agents, read_agent
from robots_core.robots.user_agent import TOKEN
from tools.propose_agents import (
    COMMON_WORDS,
    from_ai_robots_txt,
    from_crawler_user_agents,
    main,
    new,
    row_text,
    token_of,
)

SPEC = Path(__file__).parents[2] / "docs" / "reference" / "robots-spec.md"


def test_every_row_has_its_facts_and_a_source_that_exists() -> None:
    sources = {part for line in SPEC.read_text().splitlines() if line.startswith("| ") for part in line.split("|")[1:2]}
    keys = {key.strip() for part in sources for key in part.split(",")}
    for known in builtin_directory().rows:
        assert known.operator
        assert not known.own
        assert known.source_date is not None
        assert known.source in keys, known.agent.token
        assert known.source_date <= datetime.now(UTC).date()
        assert known.documentation is None or known.documentation.startswith("https://")


def test_no_token_is_in_the_table_twice() -> None:
    tokens = [token.lower() for _, token, _ in agent_rows()]
    assert len(tokens) == len(set(tokens))


@pytest.mark.parametrize("category", AgentCategory)
def test_every_category_has_a_crawler_and_stands_for_it(category: AgentCategory) -> None:
    tokens = [known.agent.token for known in builtin_directory().of(category)]
    assert tokens
    assert builtin_directory().expand(f"@{category}") == tokens
    assert read_category(str(category)) is category


def test_names_stand_for_themselves_and_unknown_categories_are_named() -> None:
    assert builtin_directory().expand("GPTBot") == ["GPTBot"]
    for name in ("@", "@AI-training", "@bots"):
        with pytest.raises(UnknownCategory, match="search, ai-training, ai-search"):
            builtin_directory().expand(name)


def test_old_and_other_spellings_are_known() -> None:
    assert read_agent("Googlebot-MediaPartners/2.1").chain == ("googlebot-mediapartners", "mediapartners-google")
    assert not read_agent("googlebot-mediapartners").star


LISTED = (Path(__file__).parents[1] / "cases" / "ai-robots-txt.txt").read_text().splitlines()
"""The names of ai.robots.txt (robots.json at commit 0037a9e2c5ff)."""


def test_every_ai_crawler_of_the_list_is_known() -> None:
    known = {row.agent.token.lower() for row in builtin_directory().rows}
    missing = []
    for name in LISTED:
        token = token_of(name)
        if token is not None:
            missing += [] if read_agent(token).token.lower() in known else [name]
        else:
            found = TOKEN.match(name)
            missing += [] if found is not None and found[0].lower() in COMMON_WORDS else [name]
    assert missing == []
    assert len(LISTED) > 100


def test_common_words_are_not_known() -> None:
    assert known_agents().keys().isdisjoint(COMMON_WORDS)


AI_ROBOTS_TXT = {
    "GPTBot": {"operator": "[OpenAI](https://openai.com)", "function": "Scrapes data to train products."},
    "NewBot": {"operator": "[New Inc](https://new.example/bot)", "function": "Scrapes data to train models."},
    "QuietBot": {"operator": "Unclear", "function": "Unknown"},
    "Two Words": {"operator": "x"},
    "Spider": {"operator": "x"},
    "-": {"operator": "x"},
    "bad": 1,
}
USER_AGENTS: list[dict[str, Any]] = [
    {"pattern": "Googlebot\\/", "tags": ["search-engine"]},
    {"pattern": "NewBot", "tags": ["seo"]},
    {"pattern": "SeoBot\\/", "url": "https://seo.example/", "tags": ["seo", "ai-crawler"]},
    {"pattern": "[wW]get", "tags": ["http-library"]},
    {"pattern": "^Old-Bot", "tags": ["seo"]},
    {"pattern": "PlainBot"},
]


def test_proposals_are_rows_that_are_not_there_yet() -> None:
    found = new([*from_ai_robots_txt(AI_ROBOTS_TXT), *from_crawler_user_agents(USER_AGENTS)])
    assert [(it.token, it.operator, it.category, it.source) for it in found] == [
        ("NewBot", "New Inc", "ai-training", "AIR"),
        ("QuietBot", "", "other", "AIR"),
        ("Two", "", "other", "AIR"),
        ("SeoBot", "", "seo", "CUA"),
    ]
    table = tomllib.loads("\n".join(row_text(it, date(2026, 11, 22)) for it in found))
    assert table["New Inc"]["agents"]["NewBot"] == {
        "category": "ai-training",
        "documentation": "https://new.example/bot",
        "source": "AIR",
        "source_date": date(2026, 11, 22),
    }


def test_the_script_prints_what_it_proposes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "robots.json"
    file.write_text(json.dumps(AI_ROBOTS_TXT))
    assert main(["--ai-robots-txt", str(file), "--as-of", "2026-11-22"]) == 0
    lines = capsys.readouterr().out.splitlines()
    proposed = ['"New Inc".agents.NewBot', '"QuietBot".agents.QuietBot', '"Two".agents.Two']
    assert [line.partition(" = ")[0] for line in lines] == proposed
    with pytest.raises(SystemExit):
        main([])
