"""Hostile files and paths: bounded steps, a disallow if they run out, and bounded memory (spec B17)."""

from collections.abc import Callable

import pytest

from robots_core.robots._native.matching import Matcher, Patterns
from robots_core.robots.agents import read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.explain import explain
from robots_core.robots.patterns import STEPS
from robots_core.robots.robots_txt import TOKENS_KEPT, VERDICTS_KEPT, RobotsTxt
from robots_core.robots.verdict import Permission, Reason
from tests.robots.judging import AGENT, select, terms
from tests.robots.matching import AS_WRITTEN

PATH = "/" + "a" * 16_000


def nested(key: str) -> bytes:
    """Segments that are suffixes of each other, in patterns with more segments."""
    return b"User-agent: *\n" + b"".join(f"{key}: /*{'a' * size}*!\n".encode() for size in range(1, 900))


def globs(key: str, glob: str) -> bytes:
    return b"User-agent: *\nRobot-version: 2.0\n" + b"".join(
        f"{key}: {glob}{number}\n".encode() for number in range(3000)
    )


HOSTILE: dict[str, tuple[str, Callable[[str], bytes]]] = {
    "nested segments": ("rfc9309", nested),
    "nested segments for Google": ("google", nested),
    "nested segments for Seznam": ("seznam", nested),
    "globs of stars": ("v2", lambda key: globs(key, "/" + "*a" * 50 + "*b")),
    "globs of sets": ("v2", lambda key: globs(key, "/*[ab][ab][ab][ab]c")),
    "globs for Seznam": ("seznam", lambda key: globs(key, "/*" + "?" * 60 + "b")),
}


@pytest.mark.parametrize("key", ["Allow", "Disallow"])
@pytest.mark.parametrize("name", HOSTILE)
def test_b17_a_path_is_disallowed_if_steps_run_out(name: str, key: str) -> None:
    dialect, write = HOSTILE[name]
    robots = RobotsTxt(write(key))
    verdict = robots.judge(DIALECTS[dialect], AGENT, PATH)
    assert (verdict.permission, verdict.reason, verdict.rule) == (Permission.DISALLOW, Reason.TOO_COMPLEX, None)
    assert verdict.group is not None
    assert robots.judge(DIALECTS[dialect], AGENT, PATH) == verdict
    assert explain(robots, DIALECTS[dialect], AGENT, PATH, limit=5).matched == 0


@pytest.mark.parametrize("name", HOSTILE)
def test_b17_an_ordinary_path_of_a_hostile_file_is_decided(name: str) -> None:
    dialect, write = HOSTILE[name]
    verdict = RobotsTxt(write("Disallow") + b"Disallow: /private\n").judge(DIALECTS[dialect], AGENT, "/private")
    assert verdict.reason is Reason.RULE


@pytest.mark.parametrize("allowed", ["Allow: /*\n", "Allow: /\n", "Allow: " + PATH + "*\n", "Allow: /\nAllow: /*?\n"])
def test_b17_no_allow_holds_if_steps_run_out(allowed: str) -> None:
    robots = RobotsTxt(nested("Disallow") + allowed.encode())
    for path in (PATH, PATH + "?a:b"):
        verdict = robots.judge(DIALECTS["rfc9309"], AGENT, path)
        # The longest pattern decides before the others are tried.
        assert verdict.reason is Reason.TOO_COMPLEX or (verdict.rule and verdict.rule.length > 900)


def test_x5_steps_may_run_out_in_the_second_form() -> None:
    lines = [f"Disallow: /*?*{':' * size}*!\n" for size in range(1, 300)]
    robots = RobotsTxt(("User-agent: *\nAllow: /\n" + "".join(lines)).encode())
    verdict = robots.judge(DIALECTS["rfc9309"], AGENT, "/?" + ":" * 16_000)
    assert verdict.reason is Reason.TOO_COMPLEX


@pytest.mark.parametrize("globs", [False, True])
@pytest.mark.parametrize("steps", [0, 1, 10, 100, 1000])
def test_fewer_steps_give_the_same_answer_or_none(steps: int, globs: bool) -> None:
    written = [f"/*a{'a' * size}*b".encode() for size in range(20)] + [b"/*", b"/a*"]
    whole = Matcher(AS_WRITTEN, Patterns(written, steps=1 << 40, globs=globs))
    few = Matcher(AS_WRITTEN, Patterns(written, steps=steps, globs=globs))
    for path in ("/", "/b", "/aaab", "/a" * 30, "/" + "a" * 60 + "b"):
        assert few.first(path) in (-1, whole.first(path))
        assert set(few.every(path)) <= set(whole.every(path))


def test_steps_are_counted_per_decision() -> None:
    robots = RobotsTxt(nested("Disallow"))
    path = "/" + "a" * int((2 * STEPS / 900 + 900) / 2)  # takes more than half of the steps
    reasons = {robots.judge(DIALECTS["rfc9309"], AGENT, path).reason for _ in range(5)}
    assert len(reasons) == 1


def test_compiled_rules_are_bounded_for_any_callers() -> None:
    token = "abcdefghijklmnopqrstuvwxyz" * 2
    robots = RobotsTxt(f"User-agent: {token}\nDisallow: /x\nCrawl-delay: 5".encode())
    reading = robots.reading(DIALECTS["draft1996"])
    asked = {token[start:end] for start in range(52) for end in range(start + 1, 53)}
    for name in asked:
        selection = reading.select(read_agent(name))
        assert selection is not None
        assert reading.rules(selection).first("/x") == 0
        assert reading.terms(selection, read_agent(name)).crawl_delay is not None
    kept = [len(getattr(reading, name)) for name in ("_rules", "_compiled", "_terms")]
    assert len(asked) > 10 * TOKENS_KEPT
    assert max(kept) <= TOKENS_KEPT


def test_cached_rules_are_bounded_by_the_lines_of_the_file() -> None:
    # Every agent has its own group and one that all share.
    count = 90
    shared = "".join(f"User-agent: a{at}\n" for at in range(count)) + "".join(f"Allow: /{at}\n" for at in range(2000))
    own = "".join(f"User-agent: a{at}\nDisallow: /own{at}\n" for at in range(count))
    robots = RobotsTxt((shared + own).encode())
    reading = robots.reading(DIALECTS["rfc9309"])
    for at in range(count):
        agent = read_agent(f"a{at}")
        verdict = reading.judge(agent, f"/own{at}")
        assert (verdict.permission, verdict.reason) == (Permission.DISALLOW, Reason.RULE)
        kept = sum(len(rules) for rules in reading._compiled.values())
        assert kept <= 1000 + 3 * len(robots.scan.lines)


def test_cached_verdicts_are_bounded() -> None:
    robots = RobotsTxt(("User-agent: *\n" + "".join(f"Disallow: /{at}$\n" for at in range(500))).encode())
    reading = robots.reading(DIALECTS["rfc9309"])
    for at in range(500):
        rule = reading.judge(AGENT, f"/{at}").rule
        assert rule is not None
        assert rule.directive.line == at + 2
    assert len(reading._rules["*"]._verdicts) <= VERDICTS_KEPT


def test_tokens_with_the_same_groups_share_rules() -> None:
    robots = RobotsTxt(b"User-agent: a\nUser-agent: b\nDisallow: /x")
    reading = robots.reading(DIALECTS["rfc9309"])
    selections = [select(robots, "rfc9309", read_agent(name)) for name in "ab"]
    assert len({id(reading.rules(selection)) for selection in selections}) == 1


def test_agents_without_a_group_share_that_of_star() -> None:
    robots = RobotsTxt(b"User-agent: *\nDisallow: /x\nCrawl-delay: 5")
    agents = [read_agent(f"bot{number}") for number in range(50)]
    reading = robots.reading(DIALECTS["rfc9309"])
    assert len({id(reading.rules(select(robots, "rfc9309", agent))) for agent in agents}) == 1
    assert len({id(terms(robots, "rfc9309", agent)) for agent in agents}) == 1
