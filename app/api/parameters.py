"""What several routes take: its bounds, and how the OpenAPI document describes it. `reading` makes sense of it."""

from typing import Annotated

from fastapi import Query

AGENTS = 16
"""How many agents a question may name."""

WAIT, MOST_WAIT = 10.0, 60
"""Seconds that a cold fetch may hold an answer: unless said otherwise, and at most."""

MOST_AGE = 10**9
"""Seconds of the largest max_age."""

PageUrl = Annotated[str, Query(description="The page's URL, absolute, http or https, at most 16 KiB.")]
OriginUrl = Annotated[str, Query(description="Any URL of the origin, absolute, http or https.")]
At = Annotated[str | None, Query(description="RFC 3339 instant that rates are asked for; now.")]
MaxAge = Annotated[float | None, Query(ge=0, le=MOST_AGE, description="Seconds: the oldest copy that will do.")]
Wait = Annotated[float, Query(ge=0, le=MOST_WAIT, description="Seconds that a cold fetch may hold the answer.")]
