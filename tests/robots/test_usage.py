"""Spec I: usage statements are reported by path, and never change a verdict."""

import re
from collections.abc import Mapping
from itertools import permutations

import http_sf
import pytest
from hypothesis import given
from hypothesis import strategies as st

from robots_core.robots.agents import read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.lines import Directive, Key
from robots_core.robots.patterns import rfc_pattern
from robots_core.robots.robots_txt import RobotsTxt
from robots_core.robots.usage import (
    STRUCTURED_LIMIT,
    Preference,
    Usage,
    UsageTerms,
    read_dictionary,
    read_simple_dictionary,
    signal_parts,
    split_path,
)
from robots_core.robots.verdict import Permission
from tests.robots.judging import ask, terms
from tests.robots.naive_matching import matches_in_either_form

DRAFT = """User-Agent: *
Allow: /
Disallow: /never/
Content-Usage: train-ai=n
Content-Usage: /ai-ok/ train-ai=y

User-Agent: ExampleBot
Allow: /
Content-Usage: train-ai=y
"""


def usage(body: str, agent: str, path: str, dialect: str = "rfc9309") -> Usage | None:
    robots, asking = RobotsTxt(body.encode()), read_agent(agent)
    found = terms(robots, dialect, asking).usage
    verdict = robots.judge(DIALECTS[dialect], asking, path)
    return None if found is None else found.at(path, allowed=verdict.permission is Permission.ALLOW)


def stated(key: Key, *values: str | bytes) -> UsageTerms:
    """The terms of lines with one key."""
    lines = [value.encode("latin-1") if isinstance(value, str) else value for value in values]
    return UsageTerms([Directive(line, key, value) for line, value in enumerate(lines, 1)])


def content_usage(found: Usage | None) -> Mapping[str, str]:
    return {} if found is None else values_of(found.content_usage)


def values_of(stated: Mapping[str, Preference]) -> Mapping[str, str]:
    return {name: it.value for name, it in stated.items()}


@pytest.mark.parametrize(
    ("agent", "path", "expected"),
    [
        ("FooBot", "/test", {"train-ai": "n"}),
        ("FooBot", "/ai-ok/test", {"train-ai": "y"}),
        ("FooBot", "/never/test", {}),
        ("ExampleBot", "/never/test", {"train-ai": "y"}),
    ],
)
def test_i1g_the_example_of_the_draft(agent: str, path: str, expected: Mapping[str, str]) -> None:
    assert content_usage(usage(DRAFT, agent, path)) == expected


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["train-ai=n, train-ai=y"], {"train-ai": "y"}),
        (["train-ai=y", "train-ai=n"], {"train-ai": "n"}),
        (["train-ai=n", "train-ai=y"], {"train-ai": "n"}),
        (["train-ai=y", "search=n"], {"train-ai": "y", "search": "n"}),
        (["train-ai=N"], {}),
        (['train-ai="n"'], {}),
        (["train-ai"], {}),
        (["Train-AI=n"], {}),
        (["train-ai=n; x=1"], {"train-ai": "n"}),
        (["train-ai=n,,"], {}),
        (["/x* train-ai=n", "/x train-ai=y"], {"train-ai": "n"}),
        (["/y train-ai=n"], {}),
        (["/x/z/ train-ai=n", "train-ai=y"], {"train-ai": "y"}),
        (["/%78 train-ai=n", "/x train-ai=y"], {"train-ai": "n"}),
        (["/x"], {}),
        ([""], {}),
        (["train-ai=n", "/ train-ai=y"], {"train-ai": "y"}),
        (["/ train-ai=y", "train-ai=n"], {"train-ai": "y"}),
    ],
)
def test_i1_the_longest_path_counts_and_n_wins(lines: list[str], expected: Mapping[str, str]) -> None:
    assert content_usage(stated(Key.CONTENT_USAGE, *lines).at("/x/y", allowed=True)) == expected


def test_i1d_a_disallowed_page_has_no_content_usage() -> None:
    for key, value in ((Key.CONTENT_USAGE, "train-ai=y"), (Key.ALLOW_AI_TRAINING, "/")):
        assert stated(key, value).at("/x", allowed=False) is None


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["search=yes,ai-train=no"], {"search": "yes", "ai-train": "no"}),
        (["Search = YES , use=reference"], {"search": "yes", "use": "reference"}),
        (["search=yes", "search=no", "search=yes"], {"search": "no"}),
        (["search=maybe, search=yes"], {"search": "yes"}),
        (["search", "=", "a=", "=b", ","], {}),
    ],
)
def test_i2_signals_are_reported_and_no_wins(lines: list[str], expected: Mapping[str, str]) -> None:
    found = stated(Key.CONTENT_SIGNAL, *lines).at("/", allowed=False)
    assert (values_of(found.content_signal) if found else {}) == expected


def test_i2_an_own_group_inherits_no_signal() -> None:
    body = "User-agent: *\nContent-Signals: search=yes,ai-train=no\nAllow: /\n\nUser-agent: GPTBot\nDisallow: /\n"
    assert terms(RobotsTxt(body.encode()), agent=read_agent("GPTBot")).usage is None
    assert usage(body, "FooBot", "/") == Usage({}, {"search": Preference("yes", 2), "ai-train": Preference("no", 2)})


TRAINING = """User-agent: *
DisallowAITraining: /
AllowAITraining: /open
DisallowAITraining: /open/not/
AllowAITraining: /%7Ejoe
DisallowAITraining: /~joe
DisallowAITraining: /*.gif$
AllowAITraining:
Disallow: /closed
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [("/", 2), ("/open/x", 3), ("/open/not/x", 4), ("/~joe", 5), ("/%7ejoe", 5), ("/open/x.gif", 7), ("/closed", None)],
)
@pytest.mark.parametrize("dialect", ["rfc9309", "seznam", "v2", "draft1996"])
def test_i5_the_longest_training_path_wins_allow_on_a_tie(path: str, line: int | None, dialect: str) -> None:
    found = usage(TRAINING, "FooBot", path, dialect)
    assert (found.ai_training.line if found and found.ai_training else None) == line


@pytest.mark.parametrize("key", [Key.ALLOW_AI_TRAINING, Key.DISALLOW_AI_TRAINING])
def test_i5_an_empty_training_line_states_nothing(key: Key) -> None:
    assert stated(key, "").at("/x", allowed=True) is None
    assert not stated(key, "").ai_training


@pytest.mark.parametrize("order", list(permutations(["/p", "/q", "/pq", "/"])))
def test_i5_urls_with_other_statements_share_no_usage(order: tuple[str, ...]) -> None:
    found = UsageTerms(
        [
            Directive(1, Key.CONTENT_USAGE, b"/p train-ai=n"),
            Directive(2, Key.CONTENT_USAGE, b"/pq train-ai=y"),
            Directive(3, Key.DISALLOW_AI_TRAINING, b"/q"),
            Directive(4, Key.ALLOW_AI_TRAINING, b"/pq"),
        ]
    )
    said = {path: found.at(path, allowed=True) for path in order}
    assert said["/"] is None
    assert {path: content_usage(usage) for path, usage in said.items()} == {
        "/p": {"train-ai": "n"},
        "/pq": {"train-ai": "y"},
        "/q": {},
        "/": {},
    }
    lines = {path: usage.ai_training.line for path, usage in said.items() if usage and usage.ai_training}
    assert lines == {"/q": 3, "/pq": 4}
    assert len({usage.number for usage in said.values() if usage is not None}) == 3


def test_i5_training_lines_change_no_verdict() -> None:
    body = b"User-agent: *\nDisallow: /a\nDisallowAITraining: /\nAllowAITraining: /a/b\n"
    for path, closed in (("/", False), ("/a/b", True)):
        verdict = ask(body, path)
        assert (verdict.permission is Permission.DISALLOW) is closed


PATHS = st.text("/ab*$", max_size=5).map(lambda it: "/" + it)


@given(st.lists(st.tuples(st.booleans(), PATHS), max_size=8), st.text("/ab", max_size=6))
def test_i5_training_is_decided_as_by_the_reference(lines: list[tuple[bool, str]], rest: str) -> None:
    path = "/" + rest
    keys = [Key.ALLOW_AI_TRAINING if allows else Key.DISALLOW_AI_TRAINING for allows, _ in lines]
    directives = [
        Directive(line, key, pattern.encode())
        for line, (key, (_, pattern)) in enumerate(zip(keys, lines, strict=True), 1)
    ]
    found = UsageTerms(directives).at(path, allowed=True)
    spelt = [rfc_pattern(directive.value).decode() for directive in directives]
    matching = [
        (-len(pattern), directive.key is Key.DISALLOW_AI_TRAINING, directive.line)
        for directive, pattern in zip(directives, spelt, strict=True)
        if matches_in_either_form(pattern, path)
    ]
    line = min(matching)[2] if matching else None
    assert (found.ai_training.line if found and found.ai_training else None) == line


def by_the_rfc(text: bytes) -> Mapping[str, str] | None:
    """The members that are tokens, by a library that follows RFC 9651."""
    try:
        parsed = http_sf.parse(text, tltype="dictionary")
    except ValueError:
        return None
    assert isinstance(parsed, dict)
    members = ((key, member[0]) for key, member in parsed.items() if isinstance(member, tuple))
    return {key: str(use) for key, use in members if isinstance(use, http_sf.Token)}


ITEMS = [
    *["y", "n", "a:/b", "Y", "*", "1", "-7", "1.5", "1.", "1.1234", "-", "9" * 15, "9" * 16, "?0", "?2", "?", '"x"'],
    *['"\\""', '"', '"\xe9"', "::", ":YQ==:", ":Y:", "@1", "@1.5", "@", '%"a"', '%"%c3%a9"', '%"%c3"', "%x"],
    *["()", "(y)", "(y n)", "(y;a=1 2)", "(y,n)", "( y  n );b", "(y", "((y))"],
]
PARTS = st.sampled_from(
    ["a", "b-c", "*", "A", "_", "=", "=y", "=n", "a=y", "b=n,", ",", ", ", "\t,", ";", "; ", " ", "\t", "\x00", "é"]
)
FIELDS = st.lists(PARTS | st.sampled_from(ITEMS) | st.sampled_from(ITEMS).map("k={}".format), max_size=12).map("".join)


@given((FIELDS | st.text(st.characters(max_codepoint=255))).map(lambda it: it.encode("latin-1")))
def test_i1e_a_dictionary_is_read_as_in_rfc_9651(text: bytes) -> None:
    expected = by_the_rfc(text)
    assert read_dictionary(text) == expected
    assert read_simple_dictionary(text) in (None, expected)


@pytest.mark.parametrize(
    "text", ["train-ai=n", "a=y,b=n", "a=y , b=n", "a=y,\tb=n", " a=y ", "a=y,a=n", "*=y", "a=*/:"]
)
def test_i1e_simple_dictionaries_are_read_without_the_library(text: str) -> None:
    simple = read_simple_dictionary(text.encode())
    assert simple is not None
    assert simple == by_the_rfc(text.encode())


@pytest.mark.parametrize("text", ["", "a", "a=y,", "a=y;b", "a=1", "A=y", "a=y,,b=n", "a= y", "a =y", "\ta=y", "a=y\t"])
def test_i1e_other_dictionaries_are_left_to_the_library(text: str) -> None:
    assert read_simple_dictionary(text.encode()) in (None, by_the_rfc(text.encode()))


def test_i1e_full_fields_are_read_up_to_a_limit() -> None:
    long = "a=y;p=" + "1" * 10
    values = [long] * (STRUCTURED_LIMIT // len(long) - 1)
    found = stated(Key.CONTENT_USAGE, *values, "/x b=n;q")
    assert content_usage(found.at("/", allowed=True)) == {"a": "y"}
    found = stated(Key.CONTENT_USAGE, *values, *values, "/x b=n;q", "/x c=n")
    assert content_usage(found.at("/x", allowed=True)) == {"c": "n"}
    for size, is_read in (65_536, True), (65_537, False):
        field = "a=y;p=" + "1" * 10 + " " * (size - 16)
        assert content_usage(stated(Key.CONTENT_USAGE, field).at("/", allowed=True)) == ({"a": "y"} if is_read else {})


@pytest.mark.parametrize(
    ("value", "path", "rest"),
    [
        (b"/a\ttrain-ai=n", b"/a", b"train-ai=n"),
        (b"/b \t search=y", b"/b", b"search=y"),
        (b"/b", b"/b", b""),
        (b"train-ai=n", b"", b"train-ai=n"),
        (b"*/x train-ai=n", b"", b"*/x train-ai=n"),
        (b"", b"", b""),
    ],
)
def test_i1a_a_path_begins_with_a_slash_and_ends_at_a_blank(value: bytes, path: bytes, rest: bytes) -> None:
    assert split_path(value) == (path, rest)


LINES = st.builds("{}{}".format, st.sampled_from(["", "/", "/a ", "/%61 ", "/b\t", "/a\vc "]), FIELDS)
SIMPLE = st.sampled_from(["a=y", "/a a=n,b=y", "/a a=y, b=n", "/%61 b=y"])


@given(st.lists((LINES | SIMPLE).map(lambda it: it.encode("latin-1")), max_size=6))
def test_i1c_all_lines_of_a_path_count(values: list[bytes]) -> None:
    expected: dict[str, dict[str, str]] = {}
    for value in values:
        path = re.split(b"[ \t\v\f]", value, maxsplit=1)[0] if value.startswith(b"/") else b""
        of_path = expected.setdefault(rfc_pattern(path).decode() if path else "*", {})
        preferences = value.removeprefix(path).lstrip(b" \t\v\f") if path else value
        for category, use in (by_the_rfc(preferences) or {}).items():
            if use in ("y", "n"):
                of_path[category] = min(use, of_path.get(category, use))
    found = stated(Key.CONTENT_USAGE, *values).by_path
    assert {it.pattern: values_of(it.stated) for it in found} == expected
    assert [it.pattern for it in found] == sorted(expected, key=lambda path: (path == "*", -len(path)))


SIGNALS = st.lists(st.sampled_from(["a=no", "a=yes", "A=maybe", "b=YES", "b"])).map(",".join)


@given(st.lists(st.text("ab=, \tAB\xc3\xa9\x85\xa0no") | SIGNALS, max_size=5))
def test_i2_signals_are_separated_by_commas(values: list[str]) -> None:
    signals: dict[str, list[str]] = {}
    for part in (part for value in values for part in value.split(",")):
        purpose, _, value = (it.strip().lower() for it in part.partition("="))
        if purpose and value:
            signals.setdefault(purpose, []).append(value)
    expected = {
        purpose: next((it for it in ("no", "yes") if it in value), value[0]) for purpose, value in signals.items()
    }
    assert values_of(stated(Key.CONTENT_SIGNAL, *(value.encode() for value in values)).signals) == expected


def test_i10_the_first_line_with_the_winning_value_is_named() -> None:
    signals = stated(Key.CONTENT_SIGNAL, "search=maybe", "search=yes", "search=no", "search=no", "a=b", "a=c").signals
    assert signals == {"search": Preference("no", 3), "a": Preference("b", 5)}
    usages = stated(Key.CONTENT_USAGE, "search=y", "search=n, train-ai=y", "search=n", "train-ai=y")
    found = usages.at("/", allowed=True)
    assert found is not None
    assert found.content_usage == {"search": Preference("n", 2), "train-ai": Preference("y", 2)}


def test_usages_with_the_same_number_are_equal() -> None:
    robots = RobotsTxt((DRAFT + "Content-Usage: /x search=y\nAllowAITraining: /x/\nDisallowAITraining: /y\n").encode())
    found = terms(robots, agent=read_agent("ExampleBot")).usage
    assert found is not None
    usages = [
        found.at(path, allowed=allowed) for path in ("/", "/x", "/x/", "/x/y", "/y", "/z") for allowed in (True, False)
    ]
    for one in filter(None, usages):
        assert [other == one for other in filter(None, usages)] == [
            other.number == one.number for other in filter(None, usages)
        ]


def test_i9_malformed_parts_of_a_signal_are_reported() -> None:
    assert signal_parts(b"search=yes, oops,=x, A = B") == [("search", "yes"), ("oops", ""), ("", "x"), ("a", "b")]


@given(st.lists(st.binary(max_size=30)), st.text(max_size=20), st.booleans())
def test_any_lines_are_read(lines: list[bytes], path: str, allowed: bool) -> None:
    keys = [Key.CONTENT_USAGE, Key.CONTENT_SIGNAL, Key.ALLOW_AI_TRAINING, Key.DISALLOW_AI_TRAINING]
    directives = [Directive(line, key, value) for key in keys for line, value in enumerate(lines)]
    UsageTerms(directives).at("/" + path, allowed=allowed)
