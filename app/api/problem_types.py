"""Every type of problem that the routes answer with: what it means, and one as it comes."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any


@dataclass(frozen=True, slots=True)
class ProblemType:
    """One type: `slug` ends its URN; `detail`, and `parameter` and `value` if it has them, are an example's."""

    slug: str
    status: int
    meaning: str
    detail: str
    parameter: str | None = None
    value: object = None

    @property
    def urn(self) -> str:
        """The member `type` of such a problem."""
        return f"urn:robots-decisions:problem:{self.slug}"

    def example(self) -> dict[str, Any]:
        """A problem of this type."""
        about = {} if self.parameter is None else {"parameter": self.parameter, "value": self.value}
        title = HTTPStatus(self.status).phrase
        return {"type": self.urn, "title": title, "status": self.status, "detail": self.detail, **about}


_NOBODY = "the agent '()' holds no product token: letters, digits, '-' or '_', as in 'ExampleBot/1.0'"
_NO_URL = "'example.com' is not an absolute URL: it should start with http:// or https://"
_NO_DIALECT = "'latin' is no dialect; the dialects are rfc9309, google, seznam, draft1996, v2"
_NO_INSTANT = "'noon' is no RFC 3339 instant like 2026-11-21T18:30:00Z"
_NO_OUTCOME = """outcome.for is '3 moons': a time is expected as 3600, "12h" or "3d", up to 60 days."""
_TOO_LONG = "wait: Input should be less than or equal to 60."
_TWO_FILES = "Either robots or robots_base64 holds the file, and not both."
_NO_VERSION = "No version of https://www.example.com/robots.txt is known that begins with '00000000'."
_NO_FILE = "No file is held for https://www.example.com: its robots.txt is unavailable (status 404)."
_NO_KEY = "This needs an API key: send it as 'Authorization: Bearer <key>' or as 'X-API-Key: <key>'."
_BUSY = "Too many fetches are under way and waiting; ask again in 10 s."
_MISTAKE = "The service made a mistake; its log says which, under this request id."

_TYPES = (
    ProblemType("bad-request", 422, "The query or the body is not what the route is described to take.", _TOO_LONG),
    ProblemType("bad-url", 422, "A URL cannot be read.", _NO_URL, "url", "example.com"),
    ProblemType("bad-urls", 422, "One of several URLs cannot be read.", _NO_URL, "urls[0]", "example.com"),
    ProblemType("bad-agent", 422, "An agent holds no product token.", _NOBODY, "agent", "()"),
    ProblemType("bad-agents", 422, "One of several agents holds no product token.", _NOBODY, "agents[0]", "()"),
    ProblemType("bad-dialect", 422, "There is no such dialect.", _NO_DIALECT, "dialect", "latin"),
    ProblemType("bad-dialects", 422, "One of several dialects does not exist.", _NO_DIALECT, "dialects[0]", "latin"),
    ProblemType("bad-at", 422, "An instant cannot be read.", _NO_INSTANT, "at", "noon"),
    ProblemType(
        "bad-as_of", 422, "An instant cannot be read, or does not go with the rest.", _NO_INSTANT, "as_of", "noon"
    ),
    ProblemType("bad-from", 422, "A version cannot be read.", "'noon' is no version and no instant.", "from", "noon"),
    ProblemType("bad-to", 422, "A version cannot be read.", "'noon' is no version and no instant.", "to", "noon"),
    ProblemType("bad-version", 422, "A version cannot be read.", "'noon' is no id of a version.", "version", "noon"),
    ProblemType(
        "bad-item", 422, "One of several questions cannot be read.", "An item has a url and an agent.", "items[0]"
    ),
    ProblemType("bad-robots", 422, "It is not clear which file is meant.", _TWO_FILES, "robots"),
    ProblemType(
        "bad-robots_base64", 422, "The file is not in base64.", "robots_base64 is no base64.", "robots_base64", "?"
    ),
    ProblemType("bad-outcome", 422, "An outcome cannot be pretended.", _NO_OUTCOME, "outcome.for", "3 moons"),
    ProblemType(
        "bad-override", 422, "An override cannot be set.", "'the web' is no origin and no host suffix.", "scope"
    ),
    ProblemType("bad-permit", 422, "A permit is none that was given here.", "'x' is no permit of ours.", "permit", "x"),
    ProblemType("bad-expires_at", 422, "An instant cannot be read, or is over.", _NO_INSTANT, "expires_at", "noon"),
    ProblemType(
        "too-many-rows", 422, "A trial has too many rows.", "200 URLs for 100 agents make too many rows.", "urls"
    ),
    ProblemType(
        "too-many-origins", 422, "An outcome cannot be pretended for so many origins.", "8 origins at most.", "outcome"
    ),
    ProblemType("too-many-items", 422, "There are too many questions at once.", "1001 items; 1000 at most.", "items"),
    ProblemType("bad-http", 400, "It is no HTTP; the connection is closed.", "Invalid HTTP request received."),
    ProblemType("no-key", 401, "A key is needed.", _NO_KEY),
    ProblemType(
        "unknown-key", 401, "There is no such key.", "The API key that was sent is not one that is known here."
    ),
    ProblemType("forbidden", 403, "It is for operators.", "The API key 'crawler' lacks the scope 'admin'."),
    ProblemType("not-found", 404, "There is no such thing.", "Not Found"),
    ProblemType("no-file", 404, "No file is held for the origin.", _NO_FILE),
    ProblemType("no-version", 404, "No such version is known of the origin's file.", _NO_VERSION),
    ProblemType(
        "method-not-allowed", 405, "The route has no such method: Allow names those it has.", "Method Not Allowed"
    ),
    ProblemType("slow-request", 408, "The request was not sent in time.", "The body was not there within 60 s."),
    ProblemType("edit-conflict", 409, "Somebody else changed it meanwhile.", "The override was changed meanwhile."),
    ProblemType("too-many-overrides", 409, "There are as many overrides as can be.", "There are too many overrides."),
    ProblemType("too-large", 413, "The body is too large.", "The request's body has more than 4194304 octets."),
    ProblemType("quota-exceeded", 429, "The key's quota is used up: Retry-After says until when.", "Ask again in 3 s."),
    ProblemType("head-too-large", 431, "The request's head is too large.", "The head has more than 65536 octets."),
    ProblemType("internal-server-error", 500, "The service made a mistake.", _MISTAKE),
    ProblemType("busy", 503, "A fetch is needed, and no more can be begun: see Retry-After.", _BUSY),
    ProblemType("overloaded", 503, "The process has too much to do: see Retry-After.", "Ask again in 1 s."),
    ProblemType("not-ready", 503, "The service starts or stops: see Retry-After.", "The service is starting."),
    ProblemType(
        "store-down", 503, "Redis is needed, and cannot be used: see Retry-After.", "The store cannot be used."
    ),
)

PROBLEMS = {problem.slug: problem for problem in _TYPES}
"""By slug."""
