"""The JSON of `POST /v1/indexing`."""

from pydantic import BaseModel, Field

from app.api.answers.schema import VERSION_TEXT, NoteOut, is_none
from app.api.sites.reader import ReadOutcome
from robots_core.purposes.judge import PurposeState
from robots_core.purposes.policy import Purpose
from robots_core.robots.verdict import Permission, Reason


class SourceOut(BaseModel):
    """A rule that takes part in the result: where it is, the agent it names (null for all), and its normal form."""

    where: str = Field(description="header 1 or meta 2, each counted from 1 as sent, or robots.txt, or policy.")
    agent: str | None
    rule: str
    line: int | None = Field(None, exclude_if=is_none, description="The line of robots.txt; absent for the page's own.")


class PagePurposeOut(BaseModel):
    """Whether the site permits a purpose for this page, and where it says so; null if it does not say."""

    state: PurposeState
    source: SourceOut | None


class PageReadOut(BaseModel):
    """What became of the fetch of the page, and how its style sheets and scripts are closed to the agent."""

    url: str = Field(description="Where redirects led.")
    outcome: ReadOutcome = Field(description="The rules are those of the page only if it is `read`.")
    detail: str = Field(description="Why it was not read, in a sentence; else empty.")
    loads: list["LoadOut"] = Field(description="Those of the page's own origin, in the order of the page.")
    other_origins: int = Field(description="How many are of other origins, whose files are not asked for.")


class LoadOut(BaseModel):
    """A style sheet or script that the page loads, and whether the agent may fetch it."""

    url: str
    verdict: Permission
    line: int | None = Field(description="The line of robots.txt that decides; null for none.")
    version: str | None = Field(description=VERSION_TEXT)


class IndexingOut(BaseModel):
    """The effective rules, and what they permit together with robots.txt.

    A limit that is null is none. Snippets are in characters, video previews in seconds.
    """

    rules: list[str]
    max_snippet: int | None
    max_image_preview: str | None
    max_video_preview: int | None
    unavailable_after: str | None
    sources: list[SourceOut]
    at: str = Field(description="The instant that the rest is worked out for.")
    crawl: bool | None = Field(
        description="Whether robots.txt, and the policy that is enforced, permit the page's fetch; null without a url."
    )
    index: bool = Field(
        description="Whether the page's own tags permit it to be indexed, and so on for the next three."
    )
    follow: bool
    archive: bool
    snippet: bool
    decided_by: dict[str, SourceOut] = Field(
        description="By crawl, index, follow, archive and snippet: what decided; absent if nothing restricts."
    )
    implied: list[str] = Field(
        description="Rules that follow from others: noarchive from noindex, noindex from a past unavailable_after."
    )
    pending: list[str] = Field(description="Rules that are not in force yet: an unavailable_after to come.")
    purposes: dict[Purpose, PagePurposeOut] = Field(
        description="Whether the site permits each purpose, by robots.txt and by the page: the most restrictive counts."
    )
    robots_tag: list[SourceOut] = Field(description="Rules of Robots-Tag headers, a draft; they are not enforced.")
    tdm_policy: str | None = Field(description="The page's tdm-policy, as written.")
    verdict: Permission | None = Field(description="Of `GET /v1/allowed` for the url; null without one.")
    reason: Reason | None
    version: str | None = Field(description=f"Null without a url. {VERSION_TEXT}")
    page: PageReadOut | None = Field(None, description="With `fetch` alone.", exclude_if=is_none)
    notes: list[NoteOut]
