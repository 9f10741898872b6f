"""Every problem type that the routes answer with. `openapi` adds an example of each, from `examples.json`."""

from typing import NamedTuple


class ProblemType(NamedTuple):
    """A problem type: `slug` ends its URN. `path` is that of the only route that has it; None if any may."""

    slug: str
    status: int
    meaning: str
    path: str | None = None

    @property
    def urn(self) -> str:
        """The `type` member of such a problem."""
        return f"urn:robots-decisions:problem:{self.slug}"


_TYPES = (
    ProblemType("bad-request", 422, "The query or the body does not match the route's schema."),
    ProblemType("bad-url", 422, "The URL is invalid."),
    ProblemType("bad-urls", 422, "One of the URLs is invalid."),
    ProblemType("bad-agent", 422, "The agent has no product token."),
    ProblemType("bad-agents", 422, "One of the agents has no product token."),
    ProblemType("bad-dialect", 422, "The dialect is unknown."),
    ProblemType("bad-dialects", 422, "One of the dialects is unknown."),
    ProblemType("bad-category", 422, "The category is unknown."),
    ProblemType("bad-profile", 422, "The fetch profile is unknown."),
    ProblemType("bad-at", 422, "The instant is invalid."),
    ProblemType("bad-as_of", 422, "The instant is invalid, or cannot be combined with the other parameters."),
    ProblemType("bad-from", 422, "The version is invalid."),
    ProblemType("bad-to", 422, "The version is invalid."),
    ProblemType("bad-after", 422, "The id of a change is invalid."),
    ProblemType("bad-version", 422, "The version is invalid."),
    ProblemType("bad-item", 422, "One of the questions is invalid."),
    ProblemType("bad-robots", 422, "The body has neither or both of robots and robots_base64, or no valid file."),
    ProblemType("bad-status", 422, "The status says nothing of the file.", "/v1/robots"),
    ProblemType("bad-observed_at", 422, "The instant is invalid, or in the future.", "/v1/robots"),
    ProblemType("bad-headers", 422, "A header field has characters that none can have.", "/v1/robots"),
    ProblemType("bad-final_url", 422, "The URL is invalid.", "/v1/robots"),
    ProblemType("bad-robots_base64", 422, "The file is not valid base64."),
    ProblemType("bad-fetch", 422, "The page is fetched, or sent, and not both; a fetch needs its URL.", "/v1/indexing"),
    ProblemType("bad-outcome", 422, "The outcome cannot be simulated."),
    ProblemType("bad-override", 422, "The override is invalid."),
    ProblemType("bad-permit", 422, "The permit was not issued by this service."),
    ProblemType("bad-expires_at", 422, "The instant is invalid, or has passed."),
    ProblemType("too-many-rows", 422, "The test has too many rows."),
    ProblemType("too-many-origins", 422, "The outcome cannot be simulated for so many origins."),
    ProblemType("too-many-items", 422, "The batch has too many items."),
    ProblemType("bad-http", 400, "The request is not valid HTTP/1.1; the connection is closed."),
    ProblemType("no-key", 401, "An API key is required."),
    ProblemType("unknown-key", 401, "The API key is unknown."),
    ProblemType("forbidden", 403, "Only operators may do this."),
    ProblemType("may-not-sign", 403, "The API key may not sign as the agent's profile.", "/v1/permits"),
    ProblemType("not-found", 404, "The resource does not exist."),
    ProblemType("no-file", 404, "No file is cached for the origin."),
    ProblemType("no-version", 404, "No such version of the origin's file is stored."),
    ProblemType("method-not-allowed", 405, "The route does not have this method; Allow lists its methods."),
    ProblemType("slow-request", 408, "The request did not arrive in time."),
    ProblemType("edit-conflict", 409, "Another request changed it at the same time."),
    ProblemType("too-many-overrides", 409, "The limit of overrides is reached."),
    ProblemType("override-of-file", 409, "OVERRIDES_FILE has the override, so it can only be changed there."),
    ProblemType("changes-removed", 410, "The feed may lack changes that the caller has not read."),
    ProblemType("too-large", 413, "The body is too large."),
    ProblemType("unsupported-media-type", 415, "The body is not sent as JSON."),
    ProblemType("wrong-host", 421, "The Host is not a name of this machine, and the service answers no others."),
    ProblemType("quota-exceeded", 429, "The quota of the API key is used up; see Retry-After."),
    ProblemType("head-too-large", 431, "The request head is too large."),
    ProblemType("disallowed", 403, "The page may not be fetched: the verdict disallow.", "/v1/check"),
    ProblemType("internal-server-error", 500, "The service failed unexpectedly."),
    ProblemType("deferred", 503, "The page may not be fetched yet: the verdict defer; see Retry-After.", "/v1/check"),
    ProblemType(
        "busy",
        503,
        "The fetch queue is full, or too many fetches from the origin's address are under way; see Retry-After.",
    ),
    ProblemType("overloaded", 503, "The process is too busy for new work; see Retry-After."),
    ProblemType("not-ready", 503, "The service is stopping, or waits for its store; see Retry-After."),
    ProblemType("store-down", 503, "The answer needs the store, which is unavailable; see Retry-After."),
)

PROBLEMS = {problem.slug: problem for problem in _TYPES}
"""By slug."""
