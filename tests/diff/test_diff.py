"""Differences between two files agree with the verdicts, and are symmetric."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from robots_core import File, UnknownDialect, read
from robots_core.diff import AgentsChange, Changes, PathChange, changes, comparison
from robots_core.diff.as_json import changes_json
from robots_core.diff.comparison import LONGEST_PATTERN, REPORT_CHARACTERS
from robots_core.diff.witness import witness
from robots_core.robots.access import Access, Blocked, Cause, Successful, Unavailable, Unreachable
from robots_core.robots.agents import read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.dialects.dialect import Dialect
from robots_core.robots.judge import judge
from robots_core.robots.lines import readable
from robots_core.robots.robots_txt import RobotsTxt
from robots_core.robots.verdict import Permission

KEYS = [
    *["User-agent: *", "User-agent: a", "User-agent: B/2", "User-agent: Googlebot", "User-agent: c3"],
    *["Allow: /x", "Disallow: /x/y", "Disallow: /*.php$", "Disallow: /*/edit*", "Allow: /", "Disallow: /", "Disallow:"],
    *["Disallow: /\u00e9", "Disallow: /%C3%A9", "Allow: /q?a=*", "Disallow: noslash", "Disallow: *end$"],
    *["Robot-version: 2.0", "Disallow: /[ab]?c", "Disallow: /\\*lit", "Crawl-delay: 5", "Crawl-delay: 7"],
    *["Request-rate: 1/10 0800-1200", "", "Sitemap: http://h/1.xml", "Sitemap: http://h/2.xml"],
]
FILES = st.lists(st.sampled_from(KEYS), max_size=14).map(lambda lines: "\n".join(lines).encode())
READERS = st.sampled_from(list(DIALECTS.values()))
ACCESSES: list[Access] = [Unavailable(404), Unavailable(403), Blocked("10.0.0.1"), Unreachable(Cause.TIMEOUT)]


def diff(before: bytes | str, after: bytes | str, dialect: str = "rfc9309") -> Changes:
    old, new = (body.encode() if isinstance(body, str) else body for body in (before, after))
    return changes(read(old), read(new), dialect)


def backwards(found: Changes) -> Changes:
    return Changes(
        tuple(
            AgentsChange(
                it.agents,
                it.removed,
                it.added,
                tuple(PathChange(path, after, before) for path, before, after in it.paths),
                None if it.rates is None else type(it.rates)(it.rates.after, it.rates.before),
            )
            for it in found.agents
        ),
        found.sitemaps_removed,
        found.sitemaps_added,
        found.truncated,
    )


def plain(found: Changes) -> Any:
    """The changes with verdicts as facts, since groups compare by identity."""
    return [
        (it.agents, it.added, it.removed, [(path, facts(b), facts(a)) for path, b, a in it.paths], it.rates)
        for it in found.agents
    ], (found.sitemaps_added, found.sitemaps_removed, found.truncated)


def facts(verdict: Any) -> Any:
    return verdict.permission, verdict.reason, verdict.rule


@given(FILES, READERS)
def test_a_file_has_no_changes_from_itself(body: bytes, dialect: Any) -> None:
    assert changes(read(body), read(body), dialect.name) == Changes((), (), (), truncated=False)


@given(FILES, FILES, READERS)
def test_changes_are_symmetric(one: bytes, other: bytes, dialect: Any) -> None:
    there, back = changes(read(one), read(other), dialect.name), changes(read(other), read(one), dialect.name)
    assert plain(backwards(back)) == plain(there)


@given(FILES, FILES, READERS)
def test_reported_verdicts_are_those_of_the_files(one: bytes, other: bytes, dialect: Any) -> None:
    before, after = RobotsTxt(one), RobotsTxt(other)
    for change in changes(read(one), read(other), dialect.name).agents:
        for name in change.agents:
            for path, was, now in change.paths:
                assert facts(was) == facts(before.judge(dialect, read_agent(name), path))
                assert facts(now) == facts(after.judge(dialect, read_agent(name), path))
                assert was.permission is not now.permission


RULES = [
    *[
        "/",
        "/$",
        "/p",
        "/p$",
        "/p/",
        "/p/$",
        "/pub",
        "/pub$",
        "/*.php",
        "/*.php$",
        "/a*b",
        "/a*b$",
        "/p*",
        "/*p",
        "/p/q",
    ],
    *["*.php$", "/p/*.php$", "/a?b", "/a/index.htm", "/a/", "/%70", "/caf\u00e9", "", "/p/[ab]", "/p?q=*"],
]
AGENT_LINES = ["User-agent: *", "User-agent: Zz", "User-agent: Googlebot", "User-agent: Yandex"]
FILE_LINES = st.one_of(
    st.tuples(st.sampled_from(["Allow", "Disallow"]), st.sampled_from(RULES)).map(": ".join),
    st.sampled_from([*AGENT_LINES, "Robot-version: 2.0", ""]),
)
ENDS = ["", "x", "$", "/", "/x", ".php", ".phpx", "b", "bx"]
UNIVERSE = sorted(
    {
        "/" + begin + end
        for begin in (
            "",
            "p",
            "pub",
            "p/",
            "p/q",
            "a",
            "axx",
            "a?b",
            "a/",
            "a/index.htm",
            "caf%C3%A9",
            "p/a",
            "p?q=",
            "zp",
        )
        for end in ENDS
    }
)
ASKED = ["*", "Unnamed", "Zz", "Googlebot", "Googlebot-Image", "Applebot", "Yandex", "YandexBot"]
"""Agents of groups, of none, and of the groups of others."""


@st.composite
def edits(draw: st.DrawFn) -> tuple[list[str], list[str]]:
    """A file, and the same after a few edits: lines that come, go, change places, or gain or lose their last `$`."""
    before = ["User-agent: *", *draw(st.lists(FILE_LINES, min_size=1, max_size=8))]
    after = list(before)
    for kind in draw(st.lists(st.sampled_from(["add", "drop", "swap", "end"]), min_size=1, max_size=3)):
        at = draw(st.integers(0, max(0, len(after) - 1)))
        if kind == "add":
            after.insert(at, draw(FILE_LINES))
        elif len(after) > 1 and kind == "drop":
            after.pop(at)
        elif len(after) > 1 and kind == "swap":
            after[at - 1], after[at] = after[at], after[at - 1]
        elif kind == "end" and "llow" in after[at]:
            after[at] = after[at].removesuffix("$") + "$" * (not after[at].endswith("$"))
    return before, after


def assert_all_named(before: str, after: str, dialect: Dialect) -> None:
    """Each agent with a path that changed is named with a path that changed likewise, and nothing else is."""
    old, new = RobotsTxt(before.encode()), RobotsTxt(after.encode())
    found = diff(before, after, dialect.name)
    named = {name.lower(): {it.gained for it in change.paths} for change in found.agents for name in change.agents}
    assert not found.truncated
    for name in ASKED:
        agent = read_agent(name)
        changed: dict[bool, str] = {}
        for path in UNIVERSE:
            was, now = (robots.judge(dialect, agent, path).permission for robots in (old, new))
            if was is not now:
                changed.setdefault(now is Permission.ALLOW, path)
        reported = named.get(name.lower() if name in followers(before + after, dialect) else "*", set())
        assert changed.keys() <= reported, (name, changed, reported)


def followers(text: str, dialect: Dialect) -> list[str]:
    """The agents that a line of the text is for, so that `*` does not speak for them."""
    tokens = {
        line.partition(": ")[2].lower() for line in text.replace("User", "\nUser").splitlines() if line[:1] == "U"
    }
    in_draft = dialect.name == "draft1996"
    return [
        name
        for name in ASKED
        if any(token in tokens for token in dialect.tokens(read_agent(name)))
        or (in_draft and any(name.lower() in token for token in tokens))
    ]


@given(edits(), READERS)
@settings(max_examples=150)
def test_each_agent_with_a_changed_path_is_named(files: tuple[list[str], list[str]], dialect: Dialect) -> None:
    before, after = ("\n".join(lines) + "\n" for lines in files)
    assert_all_named(before, after, dialect)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=DIALECTS)
@pytest.mark.parametrize("pattern", ["/", "/pub", "/p/", "/*.php", "/a*b", "*.php", "/p*", "/p/q", "/caf\u00e9"])
@pytest.mark.parametrize("rules", ["Disallow: {}", "Disallow: /\nAllow: {}", "Allow: /\nDisallow: {}"])
def test_an_end_that_comes_or_goes_is_a_change(rules: str, pattern: str, dialect: Dialect) -> None:
    one, other = ("User-agent: *\n" + rules.format(text) + "\n" for text in (pattern, pattern + "$"))
    assert_all_named(one, other, dialect)
    assert_all_named(other, one, dialect)


@pytest.mark.parametrize("dialect", ["seznam", "v2"])
@pytest.mark.parametrize("pattern", ["/p/", "/", "/pub", "/p/[ab]", "/a?b", "/p/*.php", "/p*", "/*p"])
def test_a_version_that_comes_or_goes_is_a_change(pattern: str, dialect: str) -> None:
    one, other = (f"User-agent: SeznamBot\n{line}Disallow: {pattern}\n" for line in ("", "Robot-version: 2.0\n"))
    for before, after in ((one, other), (other, one)):
        assert_all_named(before, after, DIALECTS[dialect])
        changed = not pattern.endswith("p*")
        assert [it.agents for it in diff(before, after, dialect).agents] == [("SeznamBot",)] * changed


def test_crawlers_that_go_by_the_group_of_another_are_named_with_it() -> None:
    [found] = diff("User-agent: Yandex\nDisallow: /q\n", "User-agent: Yandex\nDisallow: /\n").agents
    assert found.agents[0] == "Yandex"
    assert "YandexBot" in found.agents
    [found] = diff("User-agent: *\nDisallow: /q\n", "User-agent: *\nDisallow: /\n").agents
    assert found.agents == ("*",)


def test_a_path_that_two_patterns_match_can_change_alone() -> None:
    [found] = diff("User-agent: *\nDisallow: /dir/\n", "User-agent: *\nDisallow: /dir/\nAllow: /*.php$\n").agents
    assert [(it.path, it.gained) for it in found.paths] == [("/dir/x.php", True)]


LINES = st.sampled_from(
    [b"user-agent: ", b"allow: /", b"disallow: *", b"robot-version: 2.0\n", b"crawl-delay: 1", b"\n"]
)
ANY_BYTES = st.lists(LINES | st.binary(max_size=6), max_size=20).map(b"".join)


@given(ANY_BYTES, ANY_BYTES, READERS)
def test_any_bytes_can_be_compared(one: bytes, other: bytes, dialect: Any) -> None:
    changes(read(one), read(other), dialect.name)


def test_names_that_no_agent_can_have_are_ignored() -> None:
    assert diff("", f"User-agent: {'a' * 3000}\nDisallow: /\n").agents == ()


@given(FILES, READERS, st.sampled_from(ACCESSES), st.booleans())
def test_an_outcome_without_a_file_is_judged_like_one(
    body: bytes, dialect: Any, access: Access, forbidden: bool
) -> None:
    for before, after in ((read(body), File(access)), (File(access), read(body))):
        for change in changes(before, after, dialect.name, forbidden=forbidden).agents:
            for path, was, now in change.paths:
                agent = read_agent(change.agents[-1])
                for file, found in (before, was), (after, now):
                    verdict = judge(file.access, file.robots, dialect, agent, path, forbidden=forbidden)
                    assert facts(found) == facts(verdict)


@pytest.mark.parametrize("access", ACCESSES)
def test_the_same_outcome_without_a_file_is_no_change(access: Access) -> None:
    assert changes(File(access), File(access)).agents == ()


def test_an_unknown_dialect_is_named() -> None:
    with pytest.raises(UnknownDialect, match=r"'rfc9310'.*rfc9309, google"):
        diff("", "", "rfc9310")


@given(st.text(alphabet="/*$?ab%C39 \u00e9;=&[]", max_size=20))
def test_a_path_drawn_from_a_pattern_is_matched_by_it(pattern: str) -> None:
    value = pattern.strip().encode().decode("latin-1")
    path = witness(value)
    robots = RobotsTxt(f"User-agent: *\nDisallow: {value}\n".encode("latin-1"))
    if path is not None and " " not in value and "*" not in value[:-1].strip("*") and value:
        assert robots.judge(DIALECTS["rfc9309"], read_agent("a"), path).permission is Permission.DISALLOW


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("/private/", "/private/"),
        ("/*.php$", "/x.php"),
        ("/a/**/b*", "/a/x/b"),
        ("*", "/"),
        ("*.pdf$", "/.pdf"),
        ("*/tmp", "/tmp"),
        ("/caf\xc3\xa9 x", "/caf%C3%A9%20x"),
        ("/$", "/"),
        ("private", None),
        ("", None),
    ],
)
def test_a_drawn_path_has_no_wildcards(pattern: str, path: str | None) -> None:
    assert witness(pattern) == path


@pytest.mark.parametrize(
    ("pattern", "path"),
    [("/a?c", "/axc"), ("/[bc]d*", "/bd"), ("/[!a]d", "/xd"), ("/\\*a\\[", "/*a["), ("*x", "/x"), ("/[", "/[")],
)
def test_a_path_drawn_from_a_glob_is_matched_by_it(pattern: str, path: str) -> None:
    assert witness(pattern, glob=True) == path


def test_paths_gained_and_lost_are_reported_with_the_rules() -> None:
    found = diff(
        "User-agent: *\nDisallow: /a\n\nUser-agent: Foo\nUser-agent: Bar\nDisallow: /f\n",
        "User-agent: *\nDisallow: /b\n\nUser-agent: Foo\nUser-agent: Bar\nDisallow: /f\nAllow: /f/ok\n",
    )
    everyone, named = found.agents
    assert everyone.agents == ("*",)
    assert [(it.path, it.gained) for it in everyone.paths] == [("/a", True), ("/b", False)]
    lost = everyone.paths[1]
    assert lost.before.rule is None
    assert lost.after.rule is not None
    assert lost.after.rule.directive == (2, "disallow", b"/b")
    assert (everyone.added, everyone.removed) == (((2, "disallow", b"/b"),), ((2, "disallow", b"/a"),))
    assert named.agents == ("Bar", "Foo")
    assert [(it.path, it.gained) for it in named.paths] == [("/f/ok", True)]
    assert not found.truncated


def test_a_new_group_is_compared_with_its_agents_former_group() -> None:
    [found] = diff("User-agent: *\nDisallow: /\n", "User-agent: *\nDisallow: /\n\nUser-agent: Foo\nAllow: /\n").agents
    assert found.agents == ("Foo",)
    assert [(it.path, it.gained) for it in found.paths] == [("/", True)]


def test_reordered_rules_are_no_change() -> None:
    assert (
        diff("User-agent: *\nAllow: /a\nDisallow: /b\n", "# new\nUser-agent: *\nDisallow: /b\nAllow: /a\n").agents == ()
    )
    in_order = diff("User-agent: *\nAllow: /a\nDisallow: /\n", "User-agent: *\nDisallow: /\nAllow: /a\n", "draft1996")
    assert [it.path for it in in_order.agents[0].paths] == ["/a"]


def test_a_path_in_both_files_can_change_by_a_new_rule() -> None:
    found = diff("User-agent: *\nAllow: /shop\n", "User-agent: *\nAllow: /shop\nDisallow: /*shop$\n")
    assert [it.path for it in found.agents[0].paths] == ["/shop", "/xshop"]


def test_rates_change_with_the_pace_not_with_line_numbers() -> None:
    before = "User-agent: *\nCrawl-delay: 5\n"
    assert diff(before, "\n\n" + before).agents == ()
    [found] = diff(before, "User-agent: *\nCrawl-delay: 9\n").agents
    assert found.rates is not None
    assert [span.rate and span.rate.interval for span in (*found.rates.before, *found.rates.after)] == [5.0, 9.0]
    assert diff(before, "User-agent: *\nCrawl-delay: 9\n", "google").agents == ()


def test_added_and_removed_sitemaps_are_reported() -> None:
    found = diff("Sitemap: http://h/1\nSitemap: http://h/2", "Sitemap: http://h/2\nSitemap: http://h/3")
    assert (found.sitemaps_added, found.sitemaps_removed) == (("http://h/3",), ("http://h/1",))


def hostile(mark: str) -> list[tuple[str, str]]:
    """Pairs of files that are slow to compare, and the dialect that is slow with them."""
    everyone, version_2 = "User-agent: *\n", "User-agent: *\nRobot-version: 2.0\n"
    return [
        ("rfc9309", everyone + "".join(f"Disallow: /{mark}{at}/*x*y{at}\n" for at in range(9000))),
        ("v2", version_2 + "".join(f"Disallow: /{mark}{at}{'[' * 900}\n" for at in range(400))),
        ("rfc9309", "".join(f"User-agent: t{at}\nDisallow: /{mark}{at}*z\n" for at in range(9000))),
        ("rfc9309", "".join(f"Sitemap: http://h/{mark}{at}\n" for at in range(15000))),
        ("rfc9309", everyone + f"Disallow: /{mark}{'*a' * LONGEST_PATTERN}\n" * 100),
    ]


@pytest.mark.parametrize("at", range(5))
def test_an_expensive_comparison_is_truncated_and_says_so(at: int) -> None:
    (dialect, one), (_, other) = hostile("p")[at], hostile("q")[at]
    found = diff(one, other, dialect)
    assert found.truncated
    paths = [it.path for change in found.agents for it in change.paths]
    rules = [rule[2] for change in found.agents for rule in (*change.added, *change.removed)]
    assert sum(map(len, paths)) <= REPORT_CHARACTERS
    assert sum(map(len, [*rules, *found.sitemaps_added, *found.sitemaps_removed])) <= REPORT_CHARACTERS


@pytest.mark.parametrize("work", [0, 10, 5_000, 15_000])
def test_a_comparison_within_less_work_is_truncated(work: int) -> None:
    files = ["User-agent: *\n" + "".join(f"{key}: /{at}\n" for at in range(500)) for key in ("Allow", "Disallow")]
    old, new = (read(file.encode()) for file in files)
    found = changes(old, new, work=work)
    assert found.truncated
    assert sum(len(it.paths) for it in found.agents) < 500 == len(diff(*files).agents[0].paths)


def test_a_comparison_costs_no_more_judgements_than_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[str] = []

    def counted(*args: Any, **others: Any) -> Any:
        judged.append(args[-1])
        return judge(*args, **others)

    monkeypatch.setattr(comparison, "judge", counted)
    everyone = "User-agent: *\nRobot-version: 2.0\n"
    plain, globs = ("".join(f"Disallow: /{at}{end}\n" for at in range(4000)) for end in ("", "[ab]"))
    counts = []
    for lines in (plain, globs):
        judged.clear()
        diff(everyone, everyone + lines, "v2")
        counts.append(len(judged))
    # A path at the end of each pattern, and one behind it.
    assert counts[0] == 2 * 8001
    assert counts[1] < 2 * 1500


@given(FILES | ANY_BYTES, FILES | ANY_BYTES, READERS)
def test_json_has_all_of_the_changes(one: bytes, other: bytes, dialect: Any) -> None:
    before, after = Successful(200, one), Successful(200, other)
    members = json.loads(changes_json(before, after, dialect.name, forbidden=False))
    found = changes(read(one), read(other), dialect.name)
    assert (members["sitemaps_added"], members["truncated"]) == ([*found.sitemaps_added], found.truncated)
    assert len(members["agents"]) == len(found.agents)
    for written, change in zip(members["agents"], found.agents, strict=True):
        assert written["agents"] == [*change.agents]
        for name in ("added", "removed"):
            rules = [(rule["line"], rule["directive"], rule["pattern"]) for rule in written[name]]
            assert rules == [(line, str(key), readable(value)) for line, key, value in getattr(change, name)]
        paths = [(it["path"], it["before"]["verdict"], it["after"]["reason"]) for it in written["paths"]]
        assert paths == [(path, was.permission, now.reason) for path, was, now in change.paths]
        spans = None if change.rates is None else [(it.start, it.end) for it in change.rates.after]
        assert (written["rates"] and [(it["start"], it["end"]) for it in written["rates"]["after"]]) == spans
