"""A robots.txt that a caller fetched itself, as it sends it: the response, and when it was received."""

import base64
from datetime import datetime
from typing import Annotated, NamedTuple, TypeAlias

from pydantic import ConfigDict, Field

from app.api.json_bodies import JsonInteger, RequestModel
from app.api.problems import Problem, bad_value
from app.decisions.question import InstantText, UrlText, past_from, target_from
from app.fetch.response import REDIRECTS, Unreadable, read_observed
from robots_core.origin import Origin
from robots_core.robots.access import Fetched
from robots_core.robots.judge import recognise_challenge

CLOCK_AHEAD = 60.0
"""Seconds by which a caller's clock may be ahead of the service's; such an instant counts as now."""

OBSERVED_FIELDS = 200
"""Header fields of one response."""


NameAndValue: TypeAlias = Annotated[list[str], Field(min_length=2, max_length=2, fail_fast=True)]


class SentFile(RequestModel):
    """A robots.txt as text, or as `robots_base64` if its exact bytes matter."""

    robots: str | None = Field(None, description="The file, decoded as UTF-8.")
    robots_base64: str | None = Field(None, description="The file, byte for byte; 512,001 bytes of it are enough.")

    @property
    def size(self) -> int:
        """How long the file is, as written."""
        return len(self.robots or self.robots_base64 or "")

    def body(self) -> bytes | None:
        """The bytes of the file; None without one. Raises Problem."""
        if self.robots is not None and self.robots_base64 is not None:
            raise bad_file("Send the file as robots or as robots_base64, not as both.")
        if self.robots is not None:
            return self.robots.encode("utf-8", "surrogatepass")
        if self.robots_base64 is None:
            return None
        try:
            return base64.b64decode(self.robots_base64, validate=True)
        except ValueError as error:
            detail = f"robots_base64 is not valid base64: {error}."
            raise bad_value("robots_base64", self.robots_base64, detail) from None


class ObservationIn(SentFile):
    """The response that the caller got for a robots.txt, as text, or as `robots_base64` if its exact bytes matter."""

    model_config = ConfigDict(extra="forbid", strict=True)

    status: Annotated[int, JsonInteger] = Field(ge=200, le=599, description="Of the final response, after redirects.")
    observed_at: InstantText = Field(
        description="RFC 3339 instant at which the caller asked for the file; not after now."
    )
    headers: list[NameAndValue] = Field(
        [],
        max_length=OBSERVED_FIELDS,
        fail_fast=True,
        description="Name and value of each field. Leave out Content-Encoding if the body is decoded already.",
    )
    truncated: bool = Field(False, description="Whether the caller kept only the first part of a longer file.")
    final_url: UrlText | None = Field(None, description="The URL that answered, if the caller was redirected there.")


class Observation(NamedTuple):
    """What a caller fetched, and when (Unix seconds)."""

    fetched: Fetched
    at: float


def read_observation(sent: ObservationIn, origin: Origin, now: datetime) -> Observation:
    """Read what a caller fetched from this origin, as the fetch would. Raises Problem and BadQuestion."""
    if sent.status in REDIRECTS:
        detail = (
            f"{sent.status} is a redirect, which says nothing of the file. Send the response that it led to, and its "
            "URL as final_url."
        )
        raise bad_value("status", sent.status, detail)
    if sent.status == 304:
        detail = "304 says that a copy is still current. Send that copy, with status 200 and the instant of the 304."
        raise bad_value("status", 304, detail)
    at = past_from(sent.observed_at, now, "observed_at", CLOCK_AHEAD)
    fetched = _fetched(sent, at.timestamp(), _final_url(sent.final_url, origin))
    return Observation(recognise_challenge(fetched), at.timestamp())


def _fetched(sent: ObservationIn, at: float, final_url: str | None) -> Fetched:
    headers = [_field(f"headers[{number}]", name, value) for number, (name, value) in enumerate(sent.headers)]
    try:
        return read_observed(sent.status, headers, _body(sent), at, final_url, truncated=sent.truncated)
    except Unreadable as error:
        detail = f"The response cannot be read: {error}. If the body is decoded already, leave out Content-Encoding."
        raise bad_file(detail) from None


def _field(place: str, name: str, value: str) -> tuple[bytes, bytes]:
    try:
        return name.encode("ascii"), value.encode("latin-1")
    except UnicodeEncodeError:
        detail = "A field has a name in ASCII and a value in ISO 8859-1; send the value's bytes as such characters."
        raise bad_value(place, [name, value], detail) from None


def _body(sent: ObservationIn) -> bytes:
    body = sent.body()
    if body is None and sent.status < 300:
        raise bad_file(
            f"The body is missing: with status {sent.status}, send robots or robots_base64, if empty, as ''."
        )
    return body or b""


def bad_file(detail: str) -> Problem:
    """422 for a body without the file that it needs, or with one that cannot be read."""
    return Problem("bad-robots", detail, parameter="robots")


def _final_url(text: str | None, origin: Origin) -> str | None:
    url = None if text is None else target_from(text, "final_url").url
    return None if url == origin.with_profile(None).robots_url else url
