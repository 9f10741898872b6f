"""Spec H11, H13 to H16: a page's own rules at an instant, joined with the verdict on its URL and with purposes."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from robots_core.page_rules import NOINDEX_UNREACHABLE, UNREAD, PageRules, join, robots_tags
from robots_core.purposes.judge import Judgements, PurposeJudgement, PurposeState
from robots_core.purposes.page import STATED_LIMIT, PageField, PageSource, judge_page, tdm_policy, unread_fields
from robots_core.purposes.policy import PURPOSES
from robots_core.robots.indexing import COUNT_LIMIT, effective
from robots_core.robots.verdict import Permission, Reason, Verdict
from tests.robots.judging import ask

AT = datetime(2015, 6, 27, 23, 0, tzinfo=UTC)
AFTER = "unavailable_after: 27 Jun 2015 15:00 PST"
AFTER_RULE = "unavailable_after:2015-06-27T23:00:00Z"
CLOSED = ask("User-agent: *\nDisallow: /a\n", "/a")
OPEN = ask("User-agent: *\nDisallow: /a\n", "/b")
UNSTATED = Judgements.of(dict.fromkeys(PURPOSES, PurposeJudgement(PurposeState.UNSTATED)))


def page(*headers: str, verdict: Verdict | None = None, at: datetime = AT) -> PageRules:
    return join(effective(["googlebot"], headers, []), verdict, at)


def booleans(rules: PageRules) -> tuple[bool, ...]:
    return rules.index, rules.follow, rules.archive, rules.snippet


@pytest.mark.parametrize(
    ("header", "expected", "implied"),
    [
        ("all", (True, True, True, True), ()),
        ("noindex", (False, True, False, True), ("noarchive",)),
        ("noindex, noarchive", (False, True, False, True), ()),
        ("none", (False, False, False, True), ("noarchive",)),
        ("nofollow", (True, False, True, True), ()),
        ("noarchive", (True, True, False, True), ()),
        ("nosnippet", (True, True, True, False), ()),
        ("max-snippet:0", (True, True, True, False), ()),
        ("max-snippet:20", (True, True, True, True), ()),
        ("bingbot: noindex", (True, True, True, True), ()),
        ("googlebot: noindex", (False, True, False, True), ("noarchive",)),
    ],
)
def test_h13_noindex_also_means_no_cached_copy(
    header: str, expected: tuple[bool, ...], implied: tuple[str, ...]
) -> None:
    rules = page(header)
    assert (booleans(rules), rules.implied, rules.crawl) == (expected, implied, None)
    names = ("index", "follow", "archive", "snippet")
    assert set(rules.decided_by) == {name for name, value in zip(names, expected, strict=True) if not value}


def test_h13_the_source_of_what_is_implied_is_the_rule_it_follows_from() -> None:
    rules = page("index", "googlebot: none")
    source = PageSource("header 2", "googlebot", "none")
    assert rules.decided_by == {"index": source, "follow": source, "archive": source}


@pytest.mark.parametrize(
    ("seconds", "expected", "implied", "pending"),
    [
        (-1, (True, True, True, True), (), (AFTER_RULE,)),
        (0, (False, True, False, True), ("noindex", "noarchive"), ()),
        (1, (False, True, False, True), ("noindex", "noarchive"), ()),
    ],
)
def test_h14_from_its_instant_on_a_page_is_as_with_noindex(
    seconds: int, expected: tuple[bool, ...], implied: tuple[str, ...], pending: tuple[str, ...]
) -> None:
    rules = page(AFTER, at=AT + timedelta(seconds=seconds))
    assert (booleans(rules), rules.implied, rules.pending) == (expected, implied, pending)
    if not rules.index:
        assert rules.decided_by["index"] == PageSource("header 1", None, AFTER_RULE)


def test_h14_noindex_that_is_written_is_not_implied() -> None:
    rules = page("noindex", AFTER)
    assert (rules.implied, rules.decided_by["index"].rule) == (("noarchive",), "noindex")


@pytest.mark.parametrize(
    ("verdict", "header", "crawl", "noted"),
    [
        (CLOSED, "noindex", False, True),
        (CLOSED, "nofollow", False, False),
        (OPEN, "noindex", True, False),
        (None, "noindex", None, False),
        (Verdict(Permission.DISALLOW, Reason.FORBIDDEN), "none", False, True),
        (Verdict(Permission.DEFER, Reason.UNREACHABLE), "noindex", False, False),
        (CLOSED, AFTER, False, True),
        (Verdict(Permission.DISALLOW, Reason.USAGE), "noindex", False, False),
    ],
)
def test_h15_noindex_of_a_closed_page_is_never_read(
    verdict: Verdict | None, header: str, crawl: bool | None, noted: bool
) -> None:
    rules = page(header, verdict=verdict)
    assert rules.crawl is crawl
    assert [note.code for note in rules.notes] == [NOINDEX_UNREACHABLE] * noted


def test_h15_the_note_names_the_rule_and_the_line() -> None:
    rules = page("noindex", verdict=CLOSED)
    assert rules.decided_by["crawl"] == PageSource("robots.txt", None, "disallow: /a", 2)
    assert "(line 2: disallow: /a)" in rules.notes[0].message
    assert "'noindex' (header 1)" in rules.notes[0].message


def test_h15_a_rule_that_opens_a_page_is_named_too() -> None:
    verdict = ask("User-agent: *\nDisallow: /\nAllow: /a\n", "/a")
    assert page(verdict=verdict).decided_by["crawl"] == PageSource("robots.txt", None, "allow: /a", 3)


def field(name: str, value: str, where: str = "header 1") -> PageField:
    return PageField(where, name, value)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ([field("content-usage", "train-ai=n, search=y")], {"search": "yes", "ai-train": "no"}),
        ([field("content-usage", "train-ai=n;x=1")], {"ai-train": "no"}),
        ([field("content-usage", "train-ai=n,,")], {}),
        ([field("content-usage", "train-ai=disallow, search=allow")], {"search": "yes", "ai-train": "no"}),
        (
            [field("content-signal", "AI-Train=No, search=yes , ai-input=yes")],
            {"search": "yes", "ai-input": "yes", "ai-train": "no"},
        ),
        ([field("content-signal", "ai-train=disallow, search=allow")], {"search": "yes", "ai-train": "no"}),
        ([field("content-signal", "ai-train=yes"), field("content-signal", "ai-train=no")], {"ai-train": "no"}),
        ([field("content-signal", "ai-train=maybe, train-ai=no, use=immediate, =no, search")], {}),
        ([field("content-usage", "ai-train=n, search=no, Search=n")], {}),
        ([field("content-usage", "train-ai=y"), field("tdm-reservation", "1", "meta 1")], {"ai-train": "no"}),
        ([field("tdm-reservation", " 0 ")], {"ai-train": "yes"}),
        ([field("tdm-reservation", "2")], {}),
        ([field("x-other", "train-ai=n")], {}),
    ],
)
def test_h16_fields_of_a_page_state_purposes(fields: list[PageField], expected: dict[str, str]) -> None:
    found = judge_page(UNSTATED, fields, [])
    assert {name: it.state for name, it in found.items() if it.state != "unstated"} == expected
    assert all((it.source is None) is (it.state == "unstated") for it in found.values())


@pytest.mark.parametrize("rule", ["noai", "noimageai", "noml"])
def test_h16_rules_of_a_tag_refuse_training(rule: str) -> None:
    tags = effective(["examplebot"], [f"examplebot: {rule}"], [("otherbot", rule)]).sources
    assert judge_page(UNSTATED, [], tags)["ai-train"] == (
        PurposeState.NO,
        PageSource("header 1", "examplebot", rule),
    )
    assert judge_page(UNSTATED, [], effective(["x"], [f"examplebot: {rule}"], []).sources)["ai-train"].source is None


def test_i10_a_policy_is_named_as_what_keeps_a_page_from_being_crawled() -> None:
    refused = PurposeJudgement(PurposeState.NO, "content-signal", 2)
    purposes = Judgements.of({**UNSTATED.by_purpose, "ai-train": refused})
    rules = join(effective(["a"], ["noindex"], []), Verdict(Permission.DISALLOW, Reason.USAGE), AT, purposes)
    assert rules.decided_by["crawl"] == PageSource("policy", None, "ai-train")
    assert (rules.crawl, rules.notes) == (False, ())


@pytest.mark.parametrize("others", [0, STATED_LIMIT, 10 * STATED_LIMIT])
def test_h16_a_field_is_read_behind_any_number_of_others(others: int) -> None:
    fields = [field("citation_author", "x")] * others + [field("tdm-reservation", "1")]
    assert judge_page(UNSTATED, fields, [])["ai-train"].state == "no"
    assert unread_fields(fields) == 0


def test_h4_statements_that_are_not_read_are_noted() -> None:
    fields = [field("tdm-reservation", "0")] * STATED_LIMIT + [field("content-usage", "train-ai=n")] * 2
    assert (judge_page(UNSTATED, fields, [])["ai-train"].state, unread_fields(fields)) == ("yes", 2)
    found = effective(["a"], [], [("a", "index")] * (COUNT_LIMIT + 3))
    [note] = join(found, None, AT, unread=2).notes
    assert (note.code, note.message.partition(" ")[0]) == (UNREAD, "5")


@given(
    st.sampled_from(PurposeState),
    st.lists(st.sampled_from(["train-ai=y", "train-ai=n", "train-ai=z"]), max_size=4),
)
def test_i1f_the_most_restrictive_of_file_and_page_counts(state: PurposeState, values: list[str]) -> None:
    directive, line = (None, None) if state is PurposeState.UNSTATED else ("content-signal", 7)
    robots = Judgements.of({**UNSTATED.by_purpose, "ai-train": PurposeJudgement(state, directive, line)})
    fields = [field("content-usage", value, f"header {number}") for number, value in enumerate(values, 1)]
    found = judge_page(robots, fields, [])["ai-train"]
    states = {state, *(PurposeState.NO if it.endswith("n") else PurposeState.YES for it in values if it[-1] in "yn")}
    expected = next(it for it in (PurposeState.NO, PurposeState.YES, PurposeState.UNSTATED) if it in states)
    assert found.state is expected
    if state is expected and state is not PurposeState.UNSTATED:
        assert found.source == PageSource("robots.txt", None, "content-signal", 7)


def test_h16_the_first_policy_is_reported_as_written() -> None:
    fields = [field("tdm-policy", " "), field("tdm-policy", " https://h.example/p "), field("tdm-policy", "x")]
    assert (tdm_policy(fields), tdm_policy([])) == ("https://h.example/p", None)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("noindex", [(None, "noindex")]),
        ("*=noindex, nosnippet;", [(None, "noindex"), (None, "nosnippet")]),
        ("ExampleBot=NoSnippet; other=noindex; *=x", [("examplebot", "nosnippet")]),
        ("=noindex; ; other", []),
    ],
)
def test_h11_rules_of_the_draft_header_are_reported(value: str, expected: list[tuple[str | None, str]]) -> None:
    found = robots_tags([field("robots-tag", value), field("x-robots-tag", "noindex")], ["examplebot"])
    assert [(it.agent, it.rule) for it in found] == expected


@given(st.lists(st.tuples(st.sampled_from(["robots-tag", "content-usage", "tdm-reservation"]), st.text()), max_size=4))
def test_any_fields_are_read(pairs: list[tuple[str, str]]) -> None:
    fields = [field(name, value) for name, value in pairs]
    judge_page(UNSTATED, fields, [])
    list(robots_tags(fields, ["a"]))
