"""The verdict cases of the specification, with their rules; and verdicts without a file."""

from typing import Any

import pytest

from robots_core.origin import read_target
from robots_core.robots.access import Access, Blocked, Cause, Fetched, Lifetime, Successful, Unavailable, Unreachable
from robots_core.robots.agents import read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.judge import judge, recognise_challenge
from robots_core.robots.robots_txt import RobotsTxt
from robots_core.robots.verdict import Permission, Reason, Verdict
from tests.robots.cases import rows

VERDICTS = rows("verdict-cases.jsonl")


def ask(access: Access, path: str = "/x", dialect: str = "rfc9309", agent: str = "FooBot", **options: bool) -> Verdict:
    return judge(access, None, DIALECTS[dialect], read_agent(agent), path, **options)


@pytest.mark.parametrize("case", VERDICTS, ids=[f"{case['id']}-{case['dialect']}" for case in VERDICTS])
def test_the_verdict_of_each_case_of_the_specification(case: dict[str, Any]) -> None:
    robots = RobotsTxt(case["robots"].encode())
    access, dialect = Successful(200, robots.body), DIALECTS[case["dialect"]]
    verdict = judge(access, robots, dialect, read_agent(case["agent"]), read_target(case["url"]).path)
    rule = None
    if verdict.rule is not None:
        rule = robots.line_text(verdict.rule.directive.line)
    assert ((verdict.permission is Permission.ALLOW), rule) == (case["allowed"], case["rule"])


@pytest.mark.parametrize(
    ("access", "dialect", "permission", "reason"),
    [
        (Unavailable(404), "rfc9309", Permission.ALLOW, Reason.UNAVAILABLE),
        (Unavailable(410), "draft1996", Permission.ALLOW, Reason.UNAVAILABLE),
        (Unavailable(403), "rfc9309", Permission.ALLOW, Reason.UNAVAILABLE),
        (Unavailable(401), "google", Permission.ALLOW, Reason.UNAVAILABLE),
        (Unavailable(403), "draft1996", Permission.DISALLOW, Reason.FORBIDDEN),
        (Unavailable(301, Cause.REDIRECT_LOOP), "rfc9309", Permission.ALLOW, Reason.UNAVAILABLE),
        (Unreachable(Cause.SERVER_ERROR, 503), "rfc9309", Permission.DEFER, Reason.UNREACHABLE),
        (Unreachable(Cause.TOO_MANY_REQUESTS, 429), "google", Permission.DEFER, Reason.UNREACHABLE),
        (Unreachable(Cause.TIMEOUT), "draft1996", Permission.DEFER, Reason.UNREACHABLE),
        (Unreachable(Cause.CHALLENGE, 202), "rfc9309", Permission.DEFER, Reason.CHALLENGE),
        (Blocked("10.0.0.1"), "rfc9309", Permission.DISALLOW, Reason.BLOCKED_ADDRESS),
        (Successful(200, b""), "rfc9309", Permission.ALLOW, Reason.NO_RULES),
        (Successful(204, b""), "rfc9309", Permission.ALLOW, Reason.NO_RULES),
        (Successful(200, b"User-agent: Bar\nDisallow: /"), "rfc9309", Permission.ALLOW, Reason.NO_GROUP),
        (Successful(200, b"User-agent: *\nDisallow:"), "rfc9309", Permission.ALLOW, Reason.NO_RULES),
        (Successful(200, b"User-agent: *\nDisallow: /y"), "rfc9309", Permission.ALLOW, Reason.NO_MATCH),
        (Successful(200, b"User-agent: *\nDisallow: /x"), "rfc9309", Permission.DISALLOW, Reason.RULE),
    ],
)
def test_l4_the_verdict_for_each_outcome_of_a_fetch(
    access: Access, dialect: str, permission: Permission, reason: Reason
) -> None:
    verdict = ask(access, dialect=dialect)
    assert (verdict.permission, verdict.reason) == (permission, reason)


@pytest.mark.parametrize("status", [401, 403])
def test_q3_forbidden_closes_the_site_in_every_dialect(status: int) -> None:
    assert ask(Unavailable(status), forbidden=True).reason is Reason.FORBIDDEN
    assert ask(Unavailable(404), forbidden=True).reason is Reason.UNAVAILABLE


@pytest.mark.parametrize(
    "access", [Unreachable(Cause.TIMEOUT), Unavailable(403), Successful(200, b"User-agent: *\nDisallow: /")]
)
def test_d8_robots_txt_itself_may_always_be_fetched(access: Access) -> None:
    for dialect in DIALECTS:
        assert ask(access, "/robots.txt", dialect).reason is Reason.IMPLICIT
    assert ask(Successful(200, b"User-agent: *\nDisallow: /"), "/robots.txt?x").reason is Reason.RULE


def test_a32_a_blocked_address_is_blocked_for_the_file_too() -> None:
    assert ask(Blocked("127.0.0.1"), "/robots.txt").permission is Permission.DISALLOW


@pytest.mark.parametrize(
    ("access", "challenge"),
    [
        (Successful(202, b"<html>are you a robot?</html>", content_type="text/html"), True),
        (Successful(203, b"\n<!doctype html>"), True),
        (Successful(200, b"<html>are you a robot?</html>", content_type="text/html"), False),
        (Successful(202, b"<html>", content_type="text/plain; charset=utf-8"), False),
        (Successful(202, b"<pre>\nUser-agent: *\nDisallow: /"), False),
        (Successful(204, b""), False),
        (Unavailable(404), False),
    ],
)
def test_q9_an_html_page_with_another_2xx_is_a_challenge(access: Access, challenge: bool) -> None:
    fetched = Fetched(access, lifetime=Lifetime(cache_control="max-age=86400"))
    recognised = recognise_challenge(fetched)
    if challenge:
        assert isinstance(access, Successful)
        assert recognised == Fetched(Unreachable(Cause.CHALLENGE, access.status))
    else:
        assert recognised is fetched


def test_the_group_of_a_verdict_has_its_rule() -> None:
    body = b"User-agent: a\nDisallow: /1\n\nUser-agent: b\nUser-agent: A\nDisallow: /2\n"
    second = ask(Successful(200, body), "/2", agent="a")
    assert second.group is not None
    assert (second.group.line, second.group.agents) == (4, (b"b", b"A"))
    neither = ask(Successful(200, body), "/3", agent="a")
    assert neither.group is not None
    assert neither.group.line == 1
