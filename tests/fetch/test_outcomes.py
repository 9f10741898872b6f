"""The word for each outcome that the fetch can have decides as the outcome does."""

from itertools import product

from app.fetch.client import _Hops
from app.fetch.guard import PortPolicy
from app.fetch.profile import FetchProfile
from app.fetch.response import REDIRECTS, Headers, body_of, read_access
from robots_core.origin import Origin, Target, read_target
from robots_core.outcomes import UNREACHABLE_REDIRECT, outcome_of
from robots_core.robots.access import REDIRECT_LIMIT, Access, Cause, Fetched, NotModified, Unreachable
from robots_core.robots.judge import recognise_challenge
from tests.core.alike import assert_word_decides_alike

FIELDS: tuple[Headers, ...] = (
    [],
    [(b"content-type", b"text/html")],
    [(b"cf-mitigated", b"challenge")],
    [(b"retry-after", b"120")],
)
ORIGIN = Origin("https", "www.example.com", 443)


def walk() -> _Hops:
    return _Hops(Target(ORIGIN, "/robots.txt"), FetchProfile("Bot"), asked_port=443, seen={ORIGIN.robots_url})


def responses() -> list[Access]:
    """What the fetch reads from each status that is no redirect."""
    found: list[Access] = []
    for status, fields in product(sorted({*range(200, 1000)} - REDIRECTS), FIELDS):
        body = body_of(status, fields)
        if body is not None:
            body.feed(b"<html><title>Are you human?</title></html>")
        access = recognise_challenge(Fetched(read_access(status, fields, body, 0.0))).access
        assert not isinstance(access, NotModified)
        found.append(access)
    return found


def redirects() -> list[Access]:
    """Where the fetch ends at a redirect, without a response to read."""
    found: list[Access] = []
    for status in REDIRECTS:
        other_port = read_target("https://www.example.com:22/")
        for target in None, Target(ORIGIN, "/robots.txt"), other_port:
            ended = walk().follow(status, target, PortPolicy())
            assert ended is not None
            found.append(ended)
        followed = walk()
        for hop in range(REDIRECT_LIMIT):
            assert followed.follow(status, Target(ORIGIN, f"/{hop}"), PortPolicy()) is None
        found.append(followed.refused("10.0.0.1"))
        for followed.set_cookie in False, True:
            ended = followed.follow(status, Target(ORIGIN, "/again"), PortPolicy())
            assert ended is not None
            found.append(ended)
    return found


def failures() -> list[Access]:
    """A fetch that failed, before and after the status of its response."""
    causes = Cause.TIMEOUT, Cause.DNS, Cause.TLS, Cause.CONNECTION, Cause.BAD_RESPONSE
    return [Unreachable(cause, status) for cause in causes for status in (None, *range(100, 1000))]


def pages() -> list[Access]:
    """A web page in place of a copy that has become too old meanwhile (spec Q9)."""
    return [Unreachable(Cause.HTML_PAGE, status) for status in range(200, 300)]


def test_the_word_for_each_outcome_decides_as_the_outcome() -> None:
    found = [walk().refused("10.0.0.1"), *responses(), *redirects(), *failures(), *pages()]
    assert len({outcome_of(access) for access in found}) > 200
    for access in found:
        assert_word_decides_alike(access)


def test_redirects_that_decide_differently_have_different_words() -> None:
    words = {outcome_of(access) for access in redirects()}
    assert words == {"redirect_loop", "cookie_loop", "refused_redirect", UNREACHABLE_REDIRECT}
