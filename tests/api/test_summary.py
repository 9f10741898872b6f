"""The summary of an answer: a sentence for each reason, of bounded length, with the facts of a defer."""

import json
from dataclasses import replace

import pytest

from app.api.answers.summary import summary
from app.cache.freshness import Failing, Snapshot
from app.cache.result import CacheResult, Source
from app.decisions.evaluate import Decision, Question
from app.overrides.table import Matching, Override
from robots_core.origin import read_target
from robots_core.robots.access import Access, Blocked, Cause, Successful, Unavailable, Unreachable
from robots_core.robots.agents import read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.judge import judge
from robots_core.robots.robots_txt import RobotsTxt
from robots_core.robots.verdict import Permission, Reason, Verdict
from tests.api.service import running
from tests.origins import serve, text

AGENT = read_agent("ExampleBot")
QUESTION = Question(read_target("https://www.example.com/"), AGENT, DIALECTS["rfc9309"])
AT = 1_790_000_000.0
OWN = b"User-agent: *\nDisallow: /admin/\nAllow: /admin/help\n\nUser-agent: ExampleBot\nDisallow: /\n"
RULES = b"User-agent: *\nDisallow: /private/\nAllow: /private/open\n"


def said(
    verdict: Verdict,
    snapshot: Snapshot | None = None,
    *,
    retry_at: float | None = None,
    by: Override | None = None,
    question: Question = QUESTION,
) -> str:
    """The summary of a decision, by an override if there is one."""
    overrides = None if by is None else Matching(by, None, None, None)
    cached = CacheResult(snapshot, None, Source.MEMORY)
    robots = (
        RobotsTxt(snapshot.access.body) if snapshot is not None and isinstance(snapshot.access, Successful) else None
    )
    return summary(Decision(question, verdict, cached, robots, AT, retry_at, overrides=overrides))


def sentence(access: Access, path: str = "/a", *, agent: str = "ExampleBot", forbidden: bool = False) -> str:
    who = read_agent(agent)
    verdict = judge(access, None, DIALECTS["rfc9309"], who, path, forbidden=forbidden)
    failing = Failing(AT, AT, 1, access) if isinstance(access, Unreachable) else None
    question = Question(read_target(f"https://www.example.com{path}"), who, DIALECTS["rfc9309"])
    return said(verdict, Snapshot(access, AT, failing=failing), retry_at=AT + 300, question=question)


SENTENCES = {
    "a rule that closes": (
        sentence(Successful(200, RULES), "/private/x"),
        "Line 2 (Disallow: /private/) in the group for * disallows this URL.",
    ),
    "a rule that opens": (
        sentence(Successful(200, RULES), "/private/open"),
        "Line 3 (Allow: /private/open) in the group for * allows this URL.",
    ),
    "no match": (
        sentence(Successful(200, RULES)),
        "No rule in the group for * matches this URL, so it is allowed.",
    ),
    "no rules": (sentence(Successful(200, b"")), "robots.txt has no rules for ExampleBot, so this URL is allowed."),
    "no group": (
        sentence(Successful(200, b"User-agent: other\nDisallow: /\n")),
        "No group of robots.txt applies to ExampleBot, so this URL is allowed.",
    ),
    "a group that closes what * leaves open": (
        sentence(Successful(200, OWN), "/open"),
        (
            "Line 6 (Disallow: /) in the group for examplebot disallows this URL; "
            "the group for *, which allows it, does not apply to examplebot."
        ),
    ),
    "a group that opens what * closes": (
        sentence(Successful(200, OWN.replace(b"Disallow: /\n", b"Allow: /\n")), "/admin/x"),
        (
            "Line 6 (Allow: /) in the group for examplebot allows this URL; "
            "the group for *, which disallows it (line 2), does not apply to examplebot."
        ),
    ),
    "a group that agrees with *": (
        sentence(Successful(200, OWN), "/admin/x"),
        "Line 6 (Disallow: /) in the group for examplebot disallows this URL.",
    ),
    "a group without rules": (
        sentence(Successful(200, OWN.replace(b"Disallow: /\n", b"Crawl-delay: 5\n")), "/admin/x"),
        (
            "The group for examplebot has no rules, so this URL is allowed; "
            "the group for *, which disallows it (line 2), does not apply to examplebot."
        ),
    ),
    "a group without rules for *": (
        sentence(Successful(200, b"User-agent: *\nCrawl-delay: 1\n")),
        "The group for * has no rules, so this URL is allowed.",
    ),
    "an empty rule": (
        sentence(Successful(200, b"User-agent: *\nDisallow:\n")),
        "The group for * has only empty rules, so this URL is allowed.",
    ),
    "a joined group": (
        sentence(Successful(200, b"User-agent: *\nSitemap: https://h/s\n\nUser-agent: GPTBot\nDisallow: /\n")),
        "Line 5 (Disallow: /) in the group for * (shared with gptbot) disallows this URL.",
    ),
    "a long list": (
        sentence(Successful(200, b"User-agent: a\nUser-agent: b\nUser-agent: ExampleBot\nUser-agent: c\nAllow: /x\n")),
        "No rule in the group for examplebot (shared with a, b and 1 more) matches this URL, so it is allowed.",
    ),
    "a web page": (
        sentence(Successful(200, b"<!DOCTYPE html>\n<title>Not found</title>")),
        "A web page (HTML) came in place of robots.txt; it has no rules, so every URL is allowed.",
    ),
    "a header that names no crawler": (
        sentence(Successful(200, RULES), agent="Mozilla/5.0 (X11; Linux)"),
        (
            "No rule in the group for * matches this URL, so it is allowed; "
            "the User-Agent header names no crawler, so it is read as Mozilla."
        ),
    ),
    "a crawler that ignores *": (
        sentence(Successful(200, RULES), "/private/x", agent="AdsBot-Google"),
        (
            "No group of robots.txt applies to AdsBot-Google, so this URL is allowed; "
            "the group for *, which disallows it (line 2), does not apply to AdsBot-Google."
        ),
    ),
    "unavailable": (
        sentence(Unavailable(404)),
        "The origin answers 404 for robots.txt, which counts as having no robots.txt, so every URL is allowed.",
    ),
    "a redirect loop": (
        sentence(Unavailable(301, Cause.REDIRECT_LOOP)),
        (
            "The redirects of robots.txt form a loop or are more than 5, which counts as having no robots.txt, "
            "so every URL is allowed."
        ),
    ),
    "forbidden": (
        sentence(Unavailable(403), forbidden=True),
        "The origin answers 403 for robots.txt, so every URL is disallowed.",
    ),
    "the file itself": (sentence(Unavailable(404), "/robots.txt"), "/robots.txt itself may always be fetched."),
    "a blocked address": (
        sentence(Blocked("10.0.0.1")),
        "The host resolves to an address that is not public and that ALLOW_ADDRESSES does not admit.",
    ),
    "a server error": (
        sentence(Unreachable(Cause.SERVER_ERROR, 503)),
        (
            "robots.txt could not be fetched: the server answered 503 at 2026-09-21T14:13:20Z; "
            "no copy from the last 30 days is cached; ask again at 2026-09-21T14:18:20Z."
        ),
    ),
    "a challenge": (
        sentence(Unreachable(Cause.CHALLENGE, 202)),
        (
            "robots.txt could not be fetched: a challenge page for people came in its place at 2026-09-21T14:13:20Z; "
            "no copy from the last 30 days is cached; ask again at 2026-09-21T14:18:20Z."
        ),
    ),
    "the first fetch": (
        said(Verdict(Permission.DEFER, Reason.PENDING), retry_at=AT),
        "The first fetch of robots.txt has not finished, and no copy is cached; ask again at 2026-09-21T14:13:20Z.",
    ),
    "too complex": (
        said(Verdict(Permission.DISALLOW, Reason.TOO_COMPLEX)),
        "Matching this URL against robots.txt takes too long, so it is disallowed.",
    ),
}


@pytest.mark.parametrize("name", SENTENCES)
def test_each_reason_has_its_sentence(name: str) -> None:
    text, wanted = SENTENCES[name]
    assert text == wanted


@pytest.mark.parametrize("cause", Cause)
def test_each_cause_of_a_defer_is_named(cause: Cause) -> None:
    text = sentence(Unreachable(cause, 503))
    assert text.startswith("robots.txt could not be fetched: ")
    assert len({sentence(Unreachable(other, 503)) for other in Cause}) >= len(Cause) - 1


def test_repeated_failures_are_counted() -> None:
    failure = Unreachable(Cause.TIMEOUT)
    failing = Failing(AT, AT + 900, 3, failure)
    verdict = Verdict(Permission.DEFER, Reason.UNREACHABLE)
    text = said(verdict, Snapshot(failure, AT, failing=failing), retry_at=AT + 2100)
    assert text == (
        "robots.txt could not be fetched: the fetch timed out at 2026-09-21T14:28:20Z, the last of 3 attempts that "
        "failed since 2026-09-21T14:13:20Z; no copy from the last 30 days is cached; ask again at 2026-09-21T14:48:20Z."
    )


def test_stale_copy_is_mentioned() -> None:
    access = Successful(200, RULES)
    verdict = RobotsTxt(RULES).judge(DIALECTS["rfc9309"], AGENT, "/a")
    snapshot = Snapshot(access, AT, failing=Failing(AT + 60, AT + 60, 1, Unreachable(Cause.DNS)))
    assert said(verdict, snapshot) == (
        "No rule in the group for * matches this URL, so it is allowed; "
        "fetches have failed since 2026-09-21T14:14:20Z, so the copy of 2026-09-21T14:13:20Z is used."
    )


def test_an_override_is_named() -> None:
    deny = Override("shop-move", "shop.example", (), "deny", "They asked us to.", None, shadow=False)
    overridden = Verdict(Permission.DISALLOW, Reason.OVERRIDDEN)
    assert said(overridden, by=deny) == "An operator's override shop-move disallows this URL."
    allow = replace(deny, action="allow")
    allowed = Verdict(Permission.ALLOW, Reason.OVERRIDDEN)
    assert said(allowed, by=allow) == "An operator's override shop-move allows this URL."
    own = RobotsTxt(RULES).judge(DIALECTS["rfc9309"], AGENT, "/private/")._replace(reason=Reason.OVERRIDDEN)
    assert said(own, by=replace(deny, action="robots", robots=Successful(200, RULES))) == (
        "Line 2 (Disallow: /private/) of the text that override shop-move puts in place of robots.txt "
        "disallows this URL."
    )


def test_summary_of_a_long_rule_is_bounded() -> None:
    long = "a" * 1000
    text = sentence(Successful(200, f"User-agent: *\nDisallow: /{long}\n".encode()), f"/{long}")
    assert len(text) < 250
    assert "…) in the group" in text


async def test_a_defer_says_what_failed_when_how_often_and_when_to_ask(store_url: str, store_client: object) -> None:
    async with serve(text(503)) as origin, running(store_url) as service:
        first = await service.allowed(f"{origin.url}/")
        service.now += 7200
        second = await service.allowed(f"{origin.url}/")
        batch = await service.client.post(
            "/v1/allowed", json={"items": [{"url": f"{origin.url}/", "agent": "ExampleBot"}]}
        )
    assert first["explanation"]["summary"] == (
        "robots.txt could not be fetched: the server answered 503 at 2026-11-21T18:30:00Z; "
        f"no copy from the last 30 days is cached; ask again at {first['retry_at']}."
    )
    assert second["explanation"]["summary"] == (
        "robots.txt could not be fetched: the server answered 503 at 2026-11-21T20:30:00Z, the last of 2 attempts that "
        f"failed since 2026-11-21T18:30:00Z; "
        f"no copy from the last 30 days is cached; ask again at {second['retry_at']}."
    )
    [item] = batch.json()["answers"]
    assert item["explanation"] == second["explanation"]


async def test_rows_of_a_test_have_a_summary(store_url: str, store_client: object) -> None:
    body = {"robots": RULES.decode(), "urls": ["http://h/private/"], "agents": ["A"]}
    async with running(store_url) as service:
        plain = (await service.client.post("/v1/test", json=body)).json()
        outage = {**body, "outcome": {"status": 503, "for": "3d", "had_copy": False}}
        simulated = (await service.client.post("/v1/test", json=outage)).json()
    assert plain["rows"][0]["explanation"] == {
        "summary": "Line 2 (Disallow: /private/) in the group for * disallows this URL."
    }
    [row] = simulated["rows"]
    assert row["verdict"] == "defer"
    assert "the server answered 503 at " in row["explanation"]["summary"]
    assert row["explanation"]["summary"].endswith(f"; ask again at {row['retry_at']}.")
    assert "null" not in json.dumps([plain["rows"][0]["explanation"], row["explanation"]])
