"""The index of a group's rules: it says what trying every rule would, whatever the rules and however many."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import islice, pairwise, product
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.robots.agents import read_agent
from app.robots.compiled.globs import GlobIndex
from app.robots.compiled.patterns import PatternIndex, PrefixIndex
from app.robots.dialect import RobotsTxt, Verdict, judge_file
from app.robots.dialects import DIALECTS
from app.robots.matcher import Index, Ruleset
from app.robots.paths import draft_subject, glob_subject, google_subject, query_escaped, rfc_subject
from tests.robots.test_paths import reference

AGENT = read_agent("FooBot")


def glob_reference(pattern: str, subject: str) -> bool:
    """A 2.0 glob by its definition: the places reachable after each of its elements, a bit each."""
    places, at = 1, 0
    while at < len(pattern) and places:
        character, at = pattern[at], at + 1
        if character == "*":
            places = (1 << len(subject) + 1) - (places & -places)
            continue
        takes, wanted = {character}, True
        if character == "?":
            takes, wanted = set(), False
        elif character == "[":
            negated = pattern[at : at + 1] in ("!", "^")
            end = pattern.find("]", at + negated + 1)
            if end >= 0:
                takes, wanted = members(pattern[at + negated : end]), not negated
                at = end + 1
        elif character == "\\" and at < len(pattern):
            takes, at = {pattern[at]}, at + 1
        places = (places & places_of(frozenset(takes), wanted, subject)) << 1
    return bool(places >> len(subject) & 1)


@lru_cache(maxsize=4096)
def places_of(takes: frozenset[str], wanted: bool, subject: str) -> int:
    digits = bytes(b"01"[(chr(octet) in takes) is wanted] for octet in range(0x80))
    return int(subject[::-1].encode("ascii").translate(digits + digits) or b"0", 2)


def members(written: str) -> set[str]:
    found: set[str] = set()
    while written:
        if written[1:2] == "-" and len(written) > 2:
            found.update(map(chr, range(ord(written[0]), ord(written[2]) + 1)))
            written = written[3:]
        else:
            found.add(written[0])
            written = written[1:]
    return found


def rfc_matches(pattern: str, subject: str) -> bool:
    return reference(pattern, subject) or reference(query_escaped(pattern), query_escaped(subject))


def index_page(allows: bool, pattern: str) -> list[str]:
    """A pattern, and for an Allow of an index page the directory it stands for (spec D10)."""
    directory, slash, page = pattern.rpartition("/")
    return [pattern, f"{directory}/$"] if allows and slash and page.startswith("index.htm") else [pattern]


Rule = tuple[bool, str]
Naive = Callable[[Sequence[Rule], str], int | None]


def longest(matches: Callable[[str, str], bool], forms: Callable[[bool, str], list[str]] | None = None) -> Naive:
    """The place of the rule that decides where the longest does, Allow before Disallow, and then the first."""

    def decide(rules: Sequence[Rule], subject: str) -> int | None:
        found = [
            (-len(form), not allows, place)
            for place, (allows, pattern) in enumerate(rules)
            for form in (forms(allows, pattern) if forms else [pattern])
            if pattern and matches(form, subject)
        ]
        return min(found)[2] if found else None

    return decide


def first_prefix(rules: Sequence[Rule], subject: str) -> int | None:
    return next((at for at, (_, pattern) in enumerate(rules) if pattern and subject.startswith(pattern)), None)


# What the patterns below are written with needs no escape in any dialect, but a `$` that is not final in RFC 9309.
NAIVE: dict[str, tuple[Naive, Callable[[str], str]]] = {
    "rfc9309": (longest(rfc_matches), rfc_subject),
    "google": (longest(reference, index_page), google_subject),
    "draft1996": (first_prefix, draft_subject),
    "v2": (longest(glob_reference), glob_subject),
}

PIECE = {
    "rfc9309": ["/", "a", "b", "*", "*", "?", ":", "%3A", "ab", "aab"],
    "google": ["/", "a", "b", "*", "*", "$", "/index.htm", "ab", "aab"],
    "draft1996": ["/", "a", "b", "*", "$", "ab"],
    "v2": ["/", "a", "b", "*", "*", "?", "[ab]", "[!a]", "[a-b/]", "[", "\\", "ab", "aab"],
}


def patterns(dialect: str) -> st.SearchStrategy[str]:
    body = st.lists(st.sampled_from(PIECE[dialect]), max_size=7).map("".join)
    return st.tuples(st.sampled_from(["/", "/", "*", ""]), body, st.sampled_from(["", "", "$"])).map("".join)


def rule_lists(dialect: str) -> st.SearchStrategy[list[Rule]]:
    return st.lists(st.tuples(st.booleans(), patterns(dialect)), max_size=50)


PATHS = st.lists(st.sampled_from(["/", "a", "b", "ab", "?", ":", "%3A", "$", "/index.htm"]), max_size=10).map(
    lambda pieces: "/" + "".join(pieces)
)


def near(rules: Sequence[Rule]) -> st.SearchStrategy[str]:
    """Paths that one of the rules is made for, as far as filling its stars and marks with something can do that."""
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
    return verdict.rule.directive[0] - 3 if verdict.rule else None


def ruleset(robots: RobotsTxt, dialect: str) -> Ruleset:
    reading = robots.reading(DIALECTS[dialect])
    selection = reading.select(AGENT)
    assert selection is not None
    return reading.rules(selection)


def normalised(rules: Sequence[Rule], dialect: str) -> list[Rule]:
    def anchor_only(pattern: str) -> str:
        return pattern[:-1].replace("$", "%24") + pattern[-1:]

    return [(allows, anchor_only(pattern)) for allows, pattern in rules] if dialect == "rfc9309" else list(rules)


@pytest.mark.parametrize("dialect", NAIVE)
@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_the_index_decides_as_trying_every_rule_does(dialect: str, data: st.DataObject) -> None:
    rules = data.draw(rule_lists(dialect))
    robots = file(rules, dialect)
    decide, subject = NAIVE[dialect]
    for path in data.draw(st.lists(near(rules), min_size=1, max_size=5)):
        verdict = judge_file(robots, DIALECTS[dialect], AGENT, path)
        assert deciding(verdict) == decide(normalised(rules, dialect), subject(path))


@pytest.mark.parametrize("dialect", NAIVE)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_every_matching_rule_is_told_the_one_that_decides_first(dialect: str, data: st.DataObject) -> None:
    rules = data.draw(rule_lists(dialect))
    path = data.draw(near(rules))
    decide, subject = NAIVE[dialect]
    compiled = ruleset(file(rules, dialect), dialect)
    found, count = compiled.matches(path, len(rules) + 1)
    limit = data.draw(st.integers(0, count))
    assert compiled.matches(path, limit) == (found[:limit], count)
    assert found[:1] == [best for best in [compiled.best(path)] if best]
    alone = {
        place + 3 for place, rule in enumerate(normalised(rules, dialect)) if decide([rule], subject(path)) is not None
    }
    assert {entry.directive[0] for entry in found} == alone
    assert count == len(found) == len(alone)


def test_a_rule_with_two_patterns_is_told_in_the_place_of_the_first() -> None:
    rules = [(False, "//index.htm"), (True, "/*/index.htm")]
    found, count = ruleset(file(rules, "google"), "google").matches("//index.htm/", 5)
    assert count == 2
    assert [entry.pattern for entry in found] == ["/*/index.htm", "//index.htm"]


def test_a_query_has_two_forms_and_one_index_of_each() -> None:
    rules = [(False, "/a?x:y"), (True, "/a?x%3Ay/z"), (False, "/*?*[z]"), (False, "/a?x"), (True, "/b%3A")]
    compiled = ruleset(file(rules, "rfc9309"), "rfc9309")
    for path in ("/a?x:y", "/a?x%3Ay", "/a?x%3Ay%2Fz", "/a?x:y/z", "/a?[z]", "/a?%5Bz%5D", "/a?x", "/b:?c", "/b%3A?:"):
        expected = [at for at, (_, pattern) in enumerate(rules) if rfc_matches(pattern, rfc_subject(path))]
        assert sorted(entry.directive[0] - 3 for entry in compiled.matches(path, 5)[0]) == expected
        best = compiled.best(path)
        assert (best.directive[0] - 3 if best else None) == NAIVE["rfc9309"][0](rules, rfc_subject(path))


def text(random: Random, longest_text: int) -> str:
    return "".join(random.choices("ab", k=random.randrange(1, longest_text)))


def crowd(random: Random, dialect: str) -> list[str]:
    """Hundreds of wildcards that share heads and texts, so that every way through the index is taken."""
    mark = {"v2": "[ab]"}.get(dialect, "*")
    heads = ["/", "/", "/", "/a", ""]
    found = []
    for _ in range(700):
        texts = [text(random, 12) for _ in range(random.randrange(1, 4))]
        pattern = random.choice(heads) + "*" + random.choice(["*", mark]).join(texts)
        found.append(pattern + random.choice(["", "$" if dialect != "v2" else "", "*"]))
    return found


@pytest.mark.parametrize(
    ("dialect", "make", "matches"),
    [("google", PatternIndex, reference), ("v2", GlobIndex, glob_reference)],
)
@pytest.mark.parametrize("length", [30, 200, 1200])
@pytest.mark.parametrize("seed", range(3))
def test_a_crowd_of_wildcards_is_decided_as_one_by_one(
    dialect: str, make: Callable[[Sequence[str]], Index], matches: Callable[[str, str], bool], length: int, seed: int
) -> None:
    random = Random(f"{dialect} {length} {seed}")
    written = crowd(random, dialect)
    # Long runs of one letter, so that many texts stand nowhere, or only far behind where they are looked for.
    subject = "/" + "".join(random.choice("ab") * random.randrange(1, 9) for _ in range(length))[:length]
    expected = [place for place, pattern in enumerate(written) if matches(pattern, subject)]
    index = make(written)
    assert index.every(subject) == expected
    assert index.first(subject) == (expected[0] if expected else len(written))
    late = make(written[expected[0] + 1 :] if expected else written)
    assert late.first(subject) == (
        expected[1] - expected[0] - 1 if len(expected) > 1 else len(written) - 1 - expected[0]
    )


@pytest.mark.parametrize("decoys", range(7))
def test_of_many_texts_each_is_found_where_it_stands(decoys: int) -> None:
    grams = ["".join(letters) for letters in islice(product("abcdefgh", repeat=3), 300)]
    stretch = [f"{gram}!" * decoys + f"{gram}x" for gram in grams]
    subject = "/" + "".join(stretch)
    ahead = [f"/*{gram}x*{following}" for gram, following in pairwise(grams)]
    touching = [f"/*{one}*{other}" for one, other in pairwise(stretch)]
    single = [f"/*{gram}x" for gram in grams]
    for patterns in (ahead, touching, single):
        assert PatternIndex(patterns).every(subject) == list(range(len(patterns)))
        assert PatternIndex([*(f"{pattern}*?" for pattern in patterns), patterns[-1]]).first(subject) == len(patterns)
    behind = [f"/*{following}x*{gram}" for gram, following in pairwise(grams)]
    assert PatternIndex(behind).every(subject) == []


def test_a_pattern_of_thousands_of_stars_is_no_recursion() -> None:
    deep = ["/" + "*a" * depth + f"*b{depth}" for depth in range(100, 3100, 100)]
    index = PatternIndex(deep)
    assert index.first("/" + "a" * 1000 + "b500") == 4
    assert index.first("/" + "a" * 4000) == len(deep)


def test_prefixes_that_are_no_patterns_are_matched_to_the_letter() -> None:
    index = PrefixIndex(["/a*", "/a$", "/", "/a"])
    assert (index.first("/ab"), index.every("/a$x")) == (2, [1, 2, 3])


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
@settings(max_examples=100, deadline=None)
@given(groups=GROUPS, path=PATHS, random=st.randoms(use_true_random=False))
def test_rfc9309_the_order_of_groups_is_irrelevant(
    dialect: str, groups: list[tuple[list[str], list[Rule]]], path: str, random: Random
) -> None:
    shuffled = list(groups)
    random.shuffle(shuffled)
    before, after = (
        judge_file(RobotsTxt("\n".join(written(order)).encode()), DIALECTS[dialect], AGENT, path)
        for order in (groups, shuffled)
    )
    assert (before.decision, before.reason) == (after.decision, after.reason)
    assert (before.rule and (before.rule.allows, before.rule.length)) == (
        after.rule and (after.rule.allows, after.rule.length)
    )


@pytest.mark.parametrize("dialect", DIALECTS)
@settings(max_examples=60, deadline=None)
@given(groups=GROUPS, path=PATHS)
def test_b1_the_line_ending_never_changes_a_verdict(
    dialect: str, groups: list[tuple[list[str], list[Rule]]], path: str
) -> None:
    lf, crlf, cr = (
        judge_file(RobotsTxt(ending.join(written(groups)).encode()), DIALECTS[dialect], AGENT, path)
        for ending in ("\n", "\r\n", "\r")
    )
    for other in (crlf, cr):
        assert (lf.decision, lf.reason, lf.rule) == (other.decision, other.reason, other.rule)
