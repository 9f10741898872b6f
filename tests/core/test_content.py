"""When two outcomes of a fetch have the same content."""

import pytest

from robots_core.content import digest, same
from robots_core.robots.access import Access, Blocked, Cause, Successful, Unavailable, Unreachable

A, B = (Successful(200, f"User-agent: *\nDisallow: /{name}\n".encode()) for name in "ab")
DOWN = Unreachable(Cause.TIMEOUT)


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        (A, Successful(206, A.body, content_type="text/plain"), True),
        (A, B, False),
        (A, Successful(200, A.body, truncated=True), False),
        (Unavailable(404), Unavailable(404), True),
        (Unavailable(404), Unavailable(403), False),
        (Unavailable(302), Unavailable(302, Cause.REDIRECT_LOOP), False),
        (Unavailable(301, Cause.REDIRECT_LOOP), Unavailable(302, Cause.REDIRECT_LOOP), True),
        (Unavailable(302, Cause.REDIRECT_LOOP), Unavailable(302, Cause.REFUSED_REDIRECT), False),
        (DOWN, Unreachable(Cause.SERVER_ERROR, 503, 120), True),
        (DOWN, Unreachable(Cause.CHALLENGE, 202), False),
        (Blocked("10.0.0.1"), Blocked("10.0.0.2"), True),
        (Blocked("10.0.0.1"), Successful(200, b"blocked\0"), False),
        (Unavailable(404), Successful(200, b"unavailable 404 None\0"), False),
    ],
)
def test_content_differs_if_it_decides_differently(one: Access, other: Access, alike: bool) -> None:
    assert same(one, other) is alike
    assert (digest(one) == digest(other)) is alike
