"""RFC 9309 2.2.2, spec D7, D10, E1: the deciding rule and all that match, compared with the reference."""

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robots_core.robots.dialects import DIALECTS
from robots_core.robots.lines import Directive, Key
from robots_core.robots.robots_txt import RobotsTxt
from robots_core.robots.verdict import Verdict
from tests.robots.judging import AGENT, ask, ruleset
from tests.robots.naive_matching import DECIDE, Rule, with_directory

EVERY = pytest.mark.parametrize("dialect", DECIDE)

PIECE = {
    "rfc9309": ["/", "a", "b", "*", "*", "?", ":", "%3A", "ab", "aab", "$", "%61"],
    "google": ["/", "a", "b", "*", "*", "$", "/index.htm", "ab", "aab", "%61"],
    "draft1996": ["/", "a", "b", "*", "$", "ab", "%2F", "%2f", "%61", "%25"],
    "v2": ["/", "a", "b", "*", "*", "?", "[ab]", "[!a]", "[a-b/]", "[", "\\", "ab", "aab"],
}


def patterns(dialect: str) -> st.SearchStrategy[str]:
    body = st.lists(st.sampled_from(PIECE[dialect]), max_size=7).map("".join)
    return st.tuples(st.sampled_from(["/", "/", "*", ""]), body, st.sampled_from(["", "", "$"])).map("".join)


def rule_lists(dialect: str) -> st.SearchStrategy[list[Rule]]:
    return st.lists(st.tuples(st.booleans(), patterns(dialect)), max_size=30)


PATHS = st.lists(
    st.sampled_from(["/", "a", "b", "ab", "?", ":", "%3A", "$", "/index.htm", "%61", "%2f"]), max_size=10
).map(lambda pieces: "/" + "".join(pieces))


def near(rules: Sequence[Rule]) -> st.SearchStrategy[str]:
    """Paths from the pattern of a rule, with its wildcards replaced by text."""
    if not rules:
        return PATHS
    fillings = st.sampled_from(["", "a", "ab", "/b"])
    chosen = st.tuples(st.sampled_from([pattern for _, pattern in rules]), fillings, st.sampled_from(["", "a", "/a?b"]))
    return chosen.map(lambda it: "/" + (it[0].rstrip("$").replace("*", it[1]) + it[2]).removeprefix("/")) | PATHS


def file(rules: Sequence[Rule], dialect: str) -> RobotsTxt:
    above = ["User-agent: *", "Robot-version: 2.0"] if dialect == "v2" else ["User-agent: *", "# rules"]
    lines = [f"{'Allow' if allows else 'Disallow'}: {pattern}" for allows, pattern in rules]
    return RobotsTxt("\n".join(above + lines).encode())


def deciding(verdict: Verdict) -> int | None:
    return verdict.rule.directive.line - 3 if verdict.rule else None


def naively(rules: Sequence[Rule], dialect: str, path: str) -> int | None:
    """The index of the rule that decides, by the reference."""
    decide, spell_pattern, spell_subject = DECIDE[dialect]
    spelt = [(allows, spell_pattern(pattern.encode())) for allows, pattern in rules]
    return decide(spelt, spell_subject(path.encode()))


@EVERY
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_2_2_2_the_deciding_rule_is_that_of_the_reference(dialect: str, data: st.DataObject) -> None:
    rules = data.draw(rule_lists(dialect))
    robots = file(rules, dialect)
    for path in data.draw(st.lists(near(rules), min_size=1, max_size=5)):
        assert deciding(robots.judge(DIALECTS[dialect], AGENT, path)) == naively(rules, dialect, path)


@EVERY
@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_every_matching_rule_is_listed_in_order(dialect: str, data: st.DataObject) -> None:
    rules = data.draw(rule_lists(dialect))
    path = data.draw(near(rules))
    compiled = ruleset(file(rules, dialect), dialect)
    found, count = compiled.matches(path, len(rules) + 1)
    limit = data.draw(st.integers(0, count))
    assert compiled.matches(path, limit) == (found[:limit], count)
    number = compiled.first(path)
    assert found[:1] == ([compiled.entry(number)] if number < len(compiled) else [])
    alone = {place + 3 for place, rule in enumerate(rules) if naively([rule], dialect, path) is not None}
    assert {entry.directive.line for entry in found} == alone
    assert count == len(found) == len(alone)
    if dialect != "draft1996":
        ranks = [(-entry.length, not entry.allows, entry.directive.line) for entry in found]
        assert ranks == sorted(ranks)


@EVERY
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_b11_patterns_and_order_are_those_of_the_reference(dialect: str, data: st.DataObject) -> None:
    rules = data.draw(rule_lists(dialect))
    compiled = ruleset(file(rules, dialect), dialect)
    found = [compiled.entry(number) for number in range(len(compiled))]
    spell = DECIDE[dialect][1]
    expected = [
        (Directive(line, Key.ALLOW if allows else Key.DISALLOW, pattern.encode()), form)
        for line, (allows, pattern) in enumerate(rules, 3)
        if pattern
        for form in (
            with_directory(allows, spell(pattern.encode())) if dialect == "google" else [spell(pattern.encode())]
        )
    ]
    if dialect == "draft1996":
        assert [entry.directive for entry in found] == [directive for directive, _ in expected]
        return
    order = sorted(expected, key=lambda it: (-len(it[1]), it[0].key is not Key.ALLOW))
    assert {tuple(entry) for entry in found} == set(order)
    assert [(entry.length, entry.allows) for entry in found] == [
        (len(form), directive.key is Key.ALLOW) for directive, form in order
    ]


def test_d10_a_rule_with_two_patterns_is_listed_once() -> None:
    rules = [(False, "//index.htm"), (True, "/*/index.htm")]
    found, count = ruleset(file(rules, "google"), "google").matches("//index.htm/", 5)
    assert count == 2
    assert [entry.pattern for entry in found] == ["/*/index.htm", "//index.htm"]


@pytest.mark.parametrize("longest", [1, 200, 16_000])
def test_2_2_2_rules_of_one_length_keep_their_order(longest: int) -> None:
    rules = [(at % 3 == 0, "/" + "x" * (at * 7919 % longest)) for at in range(20 if longest > 1000 else 2000)]
    compiled = ruleset(file(rules, "rfc9309"), "rfc9309")
    found = [compiled.entry(number) for number in range(len(compiled))]
    ranks = [(-entry.length, not entry.allows, entry.directive.line) for entry in found]
    assert ranks == sorted(ranks)
    assert len(found) == len(rules)


def hostile(random: Random, dialect: str) -> tuple[list[Rule], str]:
    """Hundreds of rules that share prefixes and segments with each other and with the path."""
    letters = random.choice(["ab", "abc", "abcdefgh"])
    path = "/" + "".join(random.choice(letters) * random.randrange(1, 9) for _ in range(150))
    rules = []
    for _ in range(random.choice([20, 300])):
        begin = random.randrange(len(path))
        texts = [path[begin : begin + random.randrange(1, 40)], *random.choices(["a", "ab", "bb", "c"], k=2)]
        random.shuffle(texts)
        mark = random.choice(["*", "?", "[ab]"] if dialect == "v2" else ["*"])
        rules.append((random.random() < 0.5, "/" + random.choice(["*", "a*", ""]) + mark.join(texts) + "*"))
    return rules, path


@EVERY
@pytest.mark.parametrize("seed", range(5))
def test_hostile_rules_are_decided_as_by_the_reference(dialect: str, seed: int) -> None:
    random = Random(f"{dialect} {seed}")
    rules, path = hostile(random, dialect)
    robots = file(rules, dialect)
    for subject in (path, path[: random.randrange(1, 100)], path + "a", path[:60] + "?a:b"):
        assert deciding(robots.judge(DIALECTS[dialect], AGENT, subject)) == naively(rules, dialect, subject)


GROUPS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["*", "foobot", "FooBot/1.0", "bar"]), min_size=1, max_size=2),
        st.lists(st.tuples(st.booleans(), patterns("google")), min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=5,
)


def written(groups: Sequence[tuple[Sequence[str], Sequence[Rule]]]) -> list[str]:
    lines: list[str] = []
    for agents, rules in groups:
        lines += [f"User-agent: {agent}" for agent in agents]
        lines += [f"{'Allow' if allows else 'Disallow'}: {pattern}" for allows, pattern in rules]
    return lines


@pytest.mark.parametrize("dialect", ["rfc9309", "google"])
@settings(max_examples=50, deadline=None)
@given(groups=GROUPS, path=PATHS, random=st.randoms(use_true_random=False))
def test_2_2_1_the_order_of_groups_is_irrelevant(
    dialect: str, groups: list[tuple[list[str], list[Rule]]], path: str, random: Random
) -> None:
    shuffled = list(groups)
    random.shuffle(shuffled)
    before, after = (ask("\n".join(written(order)), path, dialect) for order in (groups, shuffled))
    assert (before.permission, before.reason) == (after.permission, after.reason)
    assert (before.rule and (before.rule.allows, before.rule.length)) == (
        after.rule and (after.rule.allows, after.rule.length)
    )


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=30, deadline=None)
@given(groups=GROUPS, path=PATHS)
def test_b1_the_line_ending_never_changes_a_verdict(
    dialect: str, groups: list[tuple[list[str], list[Rule]]], path: str
) -> None:
    lf, crlf, cr = (ask(ending.join(written(groups)), path, dialect) for ending in ("\n", "\r\n", "\r"))
    for other in (crlf, cr):
        assert (lf.permission, lf.reason, lf.rule) == (other.permission, other.reason, other.rule)
