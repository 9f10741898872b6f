"""Turn the outcome of a fetch into a verdict (RFC 9309 2.3.1, spec L4)."""

from typing import assert_never

from robots_core.robots.access import (
    Access,
    Blocked,
    Cause,
    Fetched,
    Successful,
    Unavailable,
    Unreachable,
    is_plain_text,
)
from robots_core.robots.agents import Agent
from robots_core.robots.dialects.dialect import Dialect
from robots_core.robots.robots_txt import ROBOTS_PATH, RobotsTxt, is_markup
from robots_core.robots.verdict import Permission, Reason, Verdict


def judge(
    access: Access, robots: RobotsTxt | None, dialect: Dialect, agent: Agent, path: str, *, forbidden: bool = False
) -> Verdict:
    """The verdict for `agent` about `path`, a URL's path and query.

    `robots` is the parsed file of a Successful access, if the caller has it. `forbidden` closes a site that answers 401
    or 403 under every dialect, not only under those with `forbidden_closes` (spec Q3).
    """
    match access:
        case Blocked():
            return Verdict(Permission.DISALLOW, Reason.BLOCKED_ADDRESS)
        case _ if path == ROBOTS_PATH:
            return Verdict(Permission.ALLOW, Reason.IMPLICIT)
        case Unreachable(cause=Cause.CHALLENGE):
            return Verdict(Permission.DEFER, Reason.CHALLENGE)
        case Unreachable():
            return Verdict(Permission.DEFER, Reason.UNREACHABLE)
        case Unavailable(status=401 | 403) if forbidden or dialect.forbidden_closes:
            return Verdict(Permission.DISALLOW, Reason.FORBIDDEN)
        case Unavailable():
            return Verdict(Permission.ALLOW, Reason.UNAVAILABLE)
        case Successful():
            robots = robots or RobotsTxt(access.body, truncated=access.truncated)
            return robots.judge(dialect, agent, path)
        case _:
            assert_never(access)


def recognise_challenge(fetched: Fetched) -> Fetched:
    """Report an HTML page with a 2xx status other than 200 as a challenge (spec Q9)."""
    access = fetched.access
    if not isinstance(access, Successful) or access.status == 200 or not is_web_page(access):
        return fetched
    return Fetched(Unreachable(Cause.CHALLENGE, access.status), fetched.final_url)


def hides_rules(copy: Access, found: Access) -> bool:
    """Whether a web page came in place of a file that has rules (spec Q9)."""
    if not isinstance(copy, Successful) or not isinstance(found, Successful) or not is_web_page(found):
        return False
    return RobotsTxt(copy.body).has_rules


def is_web_page(access: Successful) -> bool:
    """Whether an HTML page without any directive came in place of a file, and not as text/plain (spec Q9)."""
    if not is_markup(access.body) or (access.content_type is not None and is_plain_text(access.content_type)):
        return False
    return RobotsTxt(access.body, truncated=access.truncated).is_html
