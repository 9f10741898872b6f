"""Meta robots and X-Robots-Tag combined (spec H)."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robots_core.dates import read_date
from robots_core.robots.indexing import COUNT_LIMIT, RULES_LIMIT, Indexing, IndexingSource, effective

CASES = [
    json.loads(line)
    for line in (Path(__file__).parent.parent / "cases" / "tag-cases.jsonl").read_text("utf-8").splitlines()
]

JUNE_25 = datetime(2010, 6, 25, 15, tzinfo=UTC)


def headers_for(agent: str, *headers: str) -> Indexing:
    return effective([agent], headers, [])


def written(indexing: Indexing) -> dict[str, Any]:
    after = indexing.unavailable_after
    return {
        "rules": list(indexing.rules),
        "max_snippet": indexing.max_snippet,
        "max_image_preview": indexing.max_image_preview,
        "max_video_preview": indexing.max_video_preview,
        "unavailable_after": None if after is None else after.isoformat().replace("+00:00", "Z"),
    }


@pytest.mark.parametrize("case", CASES, ids=[f"{case['clause']}-{case['id']}" for case in CASES])
def test_spec_case(case: dict[str, Any]) -> None:
    metas = [(name, content) for name, content in case["metas"]]
    assert written(effective(case["agents"], case["headers"], metas)) == case["expect"]


@pytest.mark.parametrize(
    "text",
    [
        "Fri, 25 Jun 2010 15:00:00 GMT",
        "Friday, 25-Jun-10 15:00:00 UTC",
        "25 Jun 2010 15:00 Z",
        "25 june 2010 15:00",
        "Fri Jun 25 15:00:00 2010",
        "Fri Jun 25 15:00:00 UTC 2010",
        "June 25, 2010 15:00:00",
        "Friday, June 25, 2010 15:00",
        "2010-06-25T15:00:00Z",
        "2010-06-25 15:00",
        "2010-06-25, 15:00 UTC",
        "2010-06-25T15:00:00.000Z",
        "20100625T150000Z",
        "2010-06-25T17:00:00+02:00",
        "2010-06-25T17:00+0200",
        "2010-06-25T17:00+02",
        "25 Jun 2010 07:00:00 PST",
        "25 Jun 2010 08:00:00 PDT",
        "25 Jun 2010 10:00:00 EST",
        "25 Jun 2010 11:00:00 EDT",
        "25 Jun 2010 16:00:00 CET",
        "25 Jun 2010 17:00:00 CEST",
        "Fri Jun 25 2010 17:00:00 GMT+0200",
        "Fri,  25  Jun  2010  09:30:00  -0530",
    ],
)
def test_h6_common_dates_are_read(text: str) -> None:
    assert read_date(text) == JUNE_25


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "Friday",
        "31 Jun 2010",
        "0 Jun 2010",
        "2010-13-01",
        "25 Juin 2010",
        "25 Jun 2010 25:00",
        "25 Jun 2010 15:00 PST 2011",
        "25 Jun 2010 15:00 +2500",
        "25 Jun 2010 15:00 +0260",
        "2010-06-25T15:00:00Zjunk!",
        "0000-01-01",
        "0001-01-01T00:00:00+14:00",
        "9999-12-31T23:59:59-12:00",
        "٢٠١٠-٠٦-٢٥",
        " " * 60 + "2010-06-25",
    ],
)
def test_h6_an_invalid_date_is_none(text: str) -> None:
    assert read_date(text) is None


def test_h6_a_date_alone_is_midnight() -> None:
    assert read_date("25 Jun 2010") == read_date("20100625") == datetime(2010, 6, 25, tzinfo=UTC)


def test_h6_two_digit_years_turn_at_69_whatever_the_clock_says() -> None:
    assert read_date("01-Jan-69") == datetime(1969, 1, 1, tzinfo=UTC)
    assert read_date("01-Jan-68") == datetime(2068, 1, 1, tzinfo=UTC)


def test_h6_an_unknown_zone_name_is_utc() -> None:
    assert read_date("25 Jun 2010 15:00:00 XYZ") == JUNE_25


def test_h6_a_leap_second_is_the_second_before() -> None:
    assert read_date("2016-12-31T23:59:60Z") == datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)


@pytest.mark.parametrize("date", ["Friday, June 25, 2010 15:00", "Friday, 25-Jun-10 15:00:00 UTC", "2010-06-25T15:00Z"])
def test_h6_a_date_with_commas_ends_before_the_next_rule(date: str) -> None:
    for found in (
        headers_for("bot", f"unavailable_after: {date}, noindex"),
        effective(["bot"], [], [("bot", f"unavailable_after: {date}, noindex")]),
    ):
        assert (found.unavailable_after, found.rules) == (JUNE_25, ("noindex",))


def test_h6_a_weekday_alone_does_not_swallow_the_next_rule() -> None:
    found = headers_for("bot", "unavailable_after: Friday, noindex, nofollow")
    assert (found.unavailable_after, found.rules) == (None, ("nofollow", "noindex"))


def test_h6_the_hour_of_an_unreadable_date_is_not_an_agent() -> None:
    assert headers_for("bot", "unavailable_after: 99 Jun 2010, 15:00, noindex").rules == ("noindex",)


def test_h5_a_folded_line_changes_scope_at_each_agent() -> None:
    header = "noarchive, GoogleBot: nofollow, max-snippet: 5, otherbot: noindex"
    assert written(headers_for("googlebot", header)) == written(headers_for("x", "noarchive, nofollow, max-snippet:5"))
    assert headers_for("OtherBot", header).rules == ("noarchive", "noindex")
    assert headers_for("thirdbot", header).rules == ("noarchive",)


def test_h5_a_scope_ends_with_its_line() -> None:
    assert headers_for("bot", "otherbot: nosnippet", "noindex").rules == ("noindex",)


def test_h5_an_agent_may_stand_before_a_rule_with_a_value() -> None:
    header = "bot: unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT"
    assert headers_for("bot", header).unavailable_after == JUNE_25
    assert headers_for("x", header).unavailable_after is None


def test_h5_robots_as_a_header_scope_binds_every_agent() -> None:
    assert headers_for("bot", "robots: noindex").rules == ("noindex",)


def test_h9_a_colon_in_a_meta_tag_opens_no_scope() -> None:
    assert effective(["bot"], [], [("robots", "bot: nosnippet, noindex")]).rules == ("noindex",)


def test_h9_a_tag_without_a_name_applies_to_none() -> None:
    assert effective(["bot", ""], [], [("", "noindex")]).rules == ()


def test_h9_any_token_of_the_chain_binds() -> None:
    metas = [("googlebot-news", "nosnippet"), ("googlebot", "noindex"), ("bingbot", "nofollow")]
    assert effective(["Googlebot-News", "Googlebot"], [], metas).rules == ("noindex", "nosnippet")


def test_h8_indexifembedded_needs_a_noindex_from_anywhere() -> None:
    assert headers_for("bot", "indexifembedded") == headers_for("bot")
    found = effective(["bot"], ["indexifembedded"], [("robots", "none")])
    assert found.rules == ("indexifembedded", "nofollow", "noindex")


def test_h7_nosnippet_beats_max_snippet_in_any_order() -> None:
    assert written(headers_for("bot", "max-snippet:5", "nosnippet")) == written(headers_for("bot", "max-snippet:0"))


def test_h7_minus_one_gives_way_to_any_limit() -> None:
    found = headers_for("bot", "max-snippet:-1, max-video-preview:-1", "max-snippet:50, max-video-preview:0")
    assert (found.max_snippet, found.max_video_preview) == (50, 0)


@pytest.mark.parametrize("value", ["", "x", "-2", "1.5", "+5", "٥", "1 2", "9" * 5000])
def test_h3_a_limit_that_is_not_a_number_is_ignored(value: str) -> None:
    found = headers_for("bot", f"max-snippet:{value}, max-video-preview:{value}")
    assert replace(found, unknown=()) == headers_for("bot")
    assert found.unknown[0].rule == f"max-snippet:{value}"


def test_h7_the_smallest_image_preview_wins() -> None:
    sizes = ["max-image-preview:Large", "max-image-preview : standard"]
    assert headers_for("bot", *sizes[:1]).max_image_preview == "large"
    assert headers_for("bot", *sizes).max_image_preview == "standard"


def test_sources_are_the_rules_that_shaped_the_result() -> None:
    headers = ["Bot: NONE, none", "max-snippet:50, max-snippet: 020", "otherbot: noarchive", "foo, index"]
    metas = [("Robots", "noindex"), ("bot", "unavailable_after: Fri, 25 Jun 2010 15:00:00 GMT")]
    assert effective(["bot"], headers, metas).sources == (
        IndexingSource("header 1", "bot", "none"),
        IndexingSource("header 2", None, "max-snippet:20"),
        IndexingSource("meta 1", "robots", "noindex"),
        IndexingSource("meta 2", "bot", "unavailable_after:2010-06-25T15:00:00Z"),
    )


def test_a_long_header_loses_the_rule_that_is_cut() -> None:
    header = "noindex" + "," * (RULES_LIMIT - 20) + "max-snippet:1"
    assert len(header) == RULES_LIMIT
    assert headers_for("bot", header).max_snippet == 1
    assert headers_for("bot", header + "60") == headers_for("bot", "noindex")


def test_headers_past_the_limit_are_not_read() -> None:
    found = headers_for("bot", *["foo"] * COUNT_LIMIT, "noindex", "none")
    assert (found.rules, found.unread) == ((), 2)


@pytest.mark.parametrize("name", ["robots", " BOT"])
@pytest.mark.parametrize("others", [0, 1, COUNT_LIMIT - 1, COUNT_LIMIT, 20 * COUNT_LIMIT])
def test_h4_a_tag_is_read_behind_any_number_of_other_tags(name: str, others: int) -> None:
    tags = [(("citation_author", "googlebot", "viewport")[at % 3], "noindex") for at in range(others)]
    found = effective(["bot"], [], [*tags, (name, "noindex")])
    assert found.sources == (IndexingSource(f"meta {others + 1}", name.strip().lower(), "noindex"),)
    assert found.unread == 0


def test_h4_tags_past_the_limit_are_counted() -> None:
    found = effective(["bot"], [], [("robots", "foo"), ("x", "y")] * COUNT_LIMIT + [("bot", "noindex")] * 3)
    assert (found.rules, found.unread) == ((), 3)


NAMES = st.sampled_from(["bot", "Bot ", "robots", "otherbot", "*", "1", "b/t", ""])
RULES = st.sampled_from(
    [
        "noindex",
        "NONE",
        "all",
        "index",
        "nosnippet",
        "indexifembedded",
        "noai",
        "foo",
        "max-snippet:0",
        "max-snippet:-1",
        "max-snippet:5",
        "max-snippet: 70",
        "max-image-preview:none",
        "max-image-preview:large",
        "max-video-preview:9",
        "unavailable_after: Friday",
        "unavailable_after: 2020-01-01",
        " 25-Jun-10 15:00:00 UTC",
        "unavailable_after: 1 Jan",
        " 2010",
        "bot: noarchive",
        "otherbot: nofollow",
        "robots : nocache",
        ":",
        "",
    ]
)
LINES = st.lists(RULES, max_size=6).map(",".join)


def at_least(found: Indexing, before: Indexing) -> bool:
    """Whether `found` has every restriction of `before`."""
    after, after_before = found.unavailable_after, before.unavailable_after
    sizes = ["none", "standard", "large", None]
    return (
        set(before.rules) <= set(found.rules)
        and snippet(found) <= snippet(before)
        and limit(found.max_video_preview) <= limit(before.max_video_preview)
        and sizes.index(found.max_image_preview) <= sizes.index(before.max_image_preview)
        and (after_before is None or (after is not None and after <= after_before))
    )


def limit(value: int | None) -> float:
    return float("inf") if value is None else value


def snippet(indexing: Indexing) -> float:
    return 0 if "nosnippet" in indexing.rules else limit(indexing.max_snippet)


@given(st.lists(st.text()), st.lists(st.text() | LINES), st.lists(st.tuples(st.text() | NAMES, st.text() | LINES)))
def test_any_text_is_read(agents: Sequence[str], headers: Sequence[str], metas: Sequence[tuple[str, str]]) -> None:
    assert list(effective(agents, headers, metas).rules) == sorted(set(effective(agents, headers, metas).rules))


@given(st.text(alphabet=":0123456789-+., TZJanFriday") | st.text())
def test_any_text_is_a_date_or_none(text: str) -> None:
    date = read_date(text)
    assert date is None or date.tzinfo is UTC


@given(st.lists(LINES, max_size=6).flatmap(lambda lines: st.tuples(st.just(lines), st.permutations(lines))))
def test_h4_the_order_of_headers_is_irrelevant(orders: tuple[list[str], list[str]]) -> None:
    one, other = orders
    assert written(effective(["bot"], one, [])) == written(effective(["bot"], other, []))


@given(st.lists(LINES, max_size=5), st.lists(st.tuples(NAMES, LINES), max_size=3), LINES)
def test_h9_another_header_never_removes_a_restriction(
    headers: list[str], metas: list[tuple[str, str]], another: str
) -> None:
    before = effective(["bot"], headers, metas)
    assert at_least(effective(["bot"], [*headers, another], metas), before)
    assert at_least(effective(["bot"], headers, [*metas, ("bot", another)]), before)


@given(st.lists(LINES, max_size=5))
def test_each_effective_rule_follows_from_its_source_alone(headers: list[str]) -> None:
    found = effective(["bot"], headers, [])
    again = effective(["bot"], [source.rule for source in found.sources], [])
    assert written(again) == written(found)
