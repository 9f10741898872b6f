"""Every problem type that the routes answer with: its meaning and an example."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any


@dataclass(frozen=True, slots=True)
class ProblemType:
    """A problem type: `slug` ends its URN; `detail`, `parameter`, `value` and `more` members are those of an example.

    `path` is the path of the only route that has it; None if any may.
    """

    slug: str
    status: int
    meaning: str
    detail: str
    parameter: str | None = None
    value: object = None
    path: str | None = None
    more: Mapping[str, object] = field(default_factory=dict)

    @property
    def urn(self) -> str:
        """The `type` member of such a problem."""
        return f"urn:robots-decisions:problem:{self.slug}"

    def example(self) -> dict[str, Any]:
        """A problem of this type."""
        about = {} if self.parameter is None else {"parameter": self.parameter, "value": self.value}
        title = HTTPStatus(self.status).phrase
        return {"type": self.urn, "title": title, "status": self.status, "detail": self.detail, **about, **self.more}


_NO_AGENT = (
    "the agent '()' holds no product token outside comments and addresses: letters, digits, '-' or '_', as in "
    "'ExampleBot/1.0'"
)
_NO_URL = "'example.com' is not an absolute URL: start it with http:// or https://"
_NO_DIALECT = "Unknown dialect 'latin'. Choose one of: rfc9309, google, seznam, draft1996, v2."
_NO_PROFILE = "Unknown profile 'acme'. Choose one of: default."
_NO_CATEGORY = (
    "Unknown category 'spiders'. Choose one of: search, ai-training, ai-search, ai-assistant, archiver, seo, social, "
    "monitoring, other."
)
_NO_INSTANT = "'noon' is not an RFC 3339 instant between 1970 and 9998, such as 2026-11-21T18:30:00Z."
_A_REDIRECT = (
    "301 is a redirect, which says nothing of the file. Send the response that it led to, and its URL as final_url."
)
_NO_OUTCOME = """outcome.for is '3 moons': give a duration such as 3600, "12h" or "3d", up to 60 days."""
_TOO_LONG = "wait: Input should be less than or equal to 60."
_TWO_FILES = "Send the file as robots or as robots_base64, not as both."
_NO_VERSION = "No stored version of https://www.example.com/robots.txt has the id 00000000."
_NO_FILE = "No file is cached for https://www.example.com: its robots.txt is unavailable (status 404)."
_NO_KEY = "An API key is required. Send it as 'Authorization: Bearer <key>' or 'X-API-Key: <key>'."
_UNKNOWN_KEY = "Unknown API key. Check it, or ask the operator of this service for a new one."
_BUSY = "The fetch queue is full; try again in 10 s."
_QUOTA = (
    "The API key 'crawler' has used up its quota of 60 requests in 60 s, with at most 10 at once. Try again in 3 s."
)
_FAILED = "The service failed unexpectedly. Its log has the error under this request id."

_TYPES = (
    ProblemType("bad-request", 422, "The query or the body does not match the route's schema.", _TOO_LONG),
    ProblemType("bad-url", 422, "The URL is invalid.", _NO_URL, "url", "example.com"),
    ProblemType("bad-urls", 422, "One of the URLs is invalid.", _NO_URL, "urls[0]", "example.com"),
    ProblemType("bad-agent", 422, "The agent has no product token.", _NO_AGENT, "agent", "()"),
    ProblemType("bad-agents", 422, "One of the agents has no product token.", _NO_AGENT, "agents[0]", "()"),
    ProblemType("bad-dialect", 422, "The dialect is unknown.", _NO_DIALECT, "dialect", "latin"),
    ProblemType("bad-dialects", 422, "One of the dialects is unknown.", _NO_DIALECT, "dialects[0]", "latin"),
    ProblemType("bad-category", 422, "The category is unknown.", _NO_CATEGORY, "category", "spiders"),
    ProblemType("bad-profile", 422, "The fetch profile is unknown.", _NO_PROFILE, "profile", "acme"),
    ProblemType("bad-at", 422, "The instant is invalid.", _NO_INSTANT, "at", "noon"),
    ProblemType(
        "bad-as_of",
        422,
        "The instant is invalid, or cannot be combined with the other parameters.",
        _NO_INSTANT,
        "as_of",
        "noon",
    ),
    ProblemType(
        "bad-from",
        422,
        "The version is invalid.",
        "'noon' is neither a version id nor an RFC 3339 instant.",
        "from",
        "noon",
    ),
    ProblemType(
        "bad-to",
        422,
        "The version is invalid.",
        "'noon' is neither a version id nor an RFC 3339 instant.",
        "to",
        "noon",
    ),
    ProblemType(
        "bad-after",
        422,
        "The id of a change is invalid.",
        "'noon' is neither the id of a change, such as 1790000000000-0, nor an RFC 3339 instant.",
        "after",
        "noon",
    ),
    ProblemType(
        "bad-version",
        422,
        "The version is invalid.",
        "'noon' is not a version id; send 8 to 64 hex digits.",
        "version",
        "noon",
    ),
    ProblemType(
        "bad-item",
        422,
        "One of the questions is invalid.",
        "An item must be an object with the members url and agent.",
        "item",
    ),
    ProblemType(
        "bad-robots", 422, "The body has neither or both of robots and robots_base64, or no valid file.", _TWO_FILES
    ),
    ProblemType("bad-status", 422, "The status says nothing of the file.", _A_REDIRECT, "status", 301, "/v1/robots"),
    ProblemType(
        "bad-observed_at",
        422,
        "The instant is invalid, or in the future.",
        _NO_INSTANT,
        "observed_at",
        "noon",
        "/v1/robots",
    ),
    ProblemType(
        "bad-headers",
        422,
        "A header field has characters that none can have.",
        "A field has a name in ASCII and a value in ISO 8859-1; send the value's bytes as such characters.",
        "headers[0]",
        '["Content-Type", "\\u20ac"]',
        "/v1/robots",
    ),
    ProblemType("bad-final_url", 422, "The URL is invalid.", _NO_URL, "final_url", "example.com", "/v1/robots"),
    ProblemType(
        "bad-robots_base64",
        422,
        "The file is not valid base64.",
        "robots_base64 is not valid base64: Only base64 data is allowed.",
        "robots_base64",
        "?",
    ),
    ProblemType("bad-outcome", 422, "The outcome cannot be simulated.", _NO_OUTCOME, "outcome.for", "3 moons"),
    ProblemType(
        "bad-override",
        422,
        "The override is invalid.",
        "scope is 'the web': 'http://the web' has the host 'the web', which is not a host name",
        "scope",
        "the web",
    ),
    ProblemType(
        "bad-permit",
        422,
        "The permit was not issued by this service.",
        "'x' is not a permit that this service issued.",
        "permit",
        "x",
    ),
    ProblemType("bad-expires_at", 422, "The instant is invalid, or has passed.", _NO_INSTANT, "expires_at", "noon"),
    ProblemType(
        "too-many-rows",
        422,
        "The test has too many rows.",
        "200 URLs and 100 pairs of agent and dialect make 20000 rows; send at most 10000.",
        "urls",
    ),
    ProblemType(
        "too-many-origins",
        422,
        "The outcome cannot be simulated for so many origins.",
        "A test can simulate an outcome for at most 8 pairs of origin and recheck model.",
        "outcome",
    ),
    ProblemType(
        "too-many-items",
        422,
        "The batch has too many items.",
        "The batch has 1001 items; send at most 1000, or any number as application/x-ndjson.",
        "items",
        1001,
    ),
    ProblemType(
        "bad-http",
        400,
        "The request is not valid HTTP/1.1; the connection is closed.",
        "The request has 2 Host fields; send exactly one.",
    ),
    ProblemType("no-key", 401, "An API key is required.", _NO_KEY),
    ProblemType("unknown-key", 401, "The API key is unknown.", _UNKNOWN_KEY),
    ProblemType("forbidden", 403, "Only operators may do this.", "The API key 'crawler' lacks the scope 'admin'."),
    ProblemType("not-found", 404, "The resource does not exist.", "Not Found"),
    ProblemType("no-file", 404, "No file is cached for the origin.", _NO_FILE),
    ProblemType("no-version", 404, "No such version of the origin's file is stored.", _NO_VERSION),
    ProblemType(
        "method-not-allowed", 405, "The route does not have this method; Allow lists its methods.", "Method Not Allowed"
    ),
    ProblemType(
        "slow-request", 408, "The request did not arrive in time.", "The request body did not arrive within 60 s."
    ),
    ProblemType(
        "edit-conflict",
        409,
        "Another request changed it at the same time.",
        "The override 'o-1' was set, then changed by another request.",
    ),
    ProblemType(
        "too-many-overrides",
        409,
        "The limit of overrides is reached.",
        "There are 10000 overrides, which is the limit. Remove some first.",
    ),
    ProblemType(
        "changes-removed",
        410,
        "The feed may lack changes that the caller has not read.",
        "The feed may lack changes after 1790000000000-0: they were removed, or the store was emptied or restored; its "
        "oldest change is 1790000050000-0. Look at the origins that matter again, and continue with after=0.",
        "after",
        "1790000000000-0",
    ),
    ProblemType(
        "too-large",
        413,
        "The body is too large.",
        "The request body is larger than 4194304 bytes; send it in parts.",
    ),
    ProblemType(
        "unsupported-media-type",
        415,
        "The body is not sent as JSON.",
        "The request body is sent as 'text/plain'. Send JSON with 'Content-Type: application/json'.",
    ),
    ProblemType(
        "wrong-host",
        421,
        "The Host is not a name of this machine, and the service answers no others.",
        "Without API keys, this service answers only for hosts such as localhost and 127.0.0.1, not for 'example.com'. "
        "To serve other names, for example behind a proxy, set API_KEYS_FILE; or set ALLOW_UNAUTHENTICATED=1 if only "
        "trusted clients can reach it.",
    ),
    ProblemType("quota-exceeded", 429, "The quota of the API key is used up; see Retry-After.", _QUOTA),
    ProblemType(
        "head-too-large", 431, "The request head is too large.", "The request head is larger than 65536 bytes."
    ),
    ProblemType(
        "disallowed",
        403,
        "The page may not be fetched: the verdict disallow.",
        "Line 2 (Disallow: /private/) in the group for examplebot disallows this URL.",
        path="/v1/check",
        more={
            "verdict": "disallow",
            "reason": "rule",
            "agent": "ExampleBot",
            "rule": {"directive": "disallow", "pattern": "/private/", "line": 2},
        },
    ),
    ProblemType("internal-server-error", 500, "The service failed unexpectedly.", _FAILED),
    ProblemType(
        "deferred",
        503,
        "The page may not be fetched yet: the verdict defer; see Retry-After.",
        "The first fetch of robots.txt has not finished, and no copy is cached; ask again at 2026-11-21T18:30:05Z.",
        path="/v1/check",
        more={
            "verdict": "defer",
            "reason": "pending",
            "agent": "ExampleBot",
            "retry_at": "2026-11-21T18:30:05Z",
            "retry_after": 5,
        },
    ),
    ProblemType("busy", 503, "This process has no room for the fetch, the file or the answer; see Retry-After.", _BUSY),
    ProblemType(
        "overloaded",
        503,
        "The process is too busy for new work; see Retry-After.",
        "This process has reached its limit of connections; try again in 1 s.",
    ),
    ProblemType("not-ready", 503, "The service is starting or stopping; see Retry-After.", "The service is starting."),
    ProblemType(
        "store-down",
        503,
        "The answer needs the store, which is unavailable; see Retry-After.",
        "The store is unavailable: the store failed less than 1 s ago and is not called.",
    ),
)

PROBLEMS = {problem.slug: problem for problem in _TYPES}
"""By slug."""
