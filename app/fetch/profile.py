"""Fetch profiles: the header fields by which a site tells one crawler from another."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from app.fetch.response import Headers, as_field
from robots_core.origin import Target

if TYPE_CHECKING:  # of the extra `signatures`
    from app.identity.signer import RequestSigner


@dataclass(frozen=True, slots=True)
class FetchProfile:
    """What a fetch says about who it is for: `user_agent`, and if they are not None `from_` and a signature.

    Raises ValueError for values that cannot be sent.
    """

    user_agent: str
    from_: str | None = None
    signer: "RequestSigner | None" = None

    def __post_init__(self) -> None:
        for name, value in (("user agent", self.user_agent), ("from", self.from_)):
            if value is not None and not (value.isascii() and as_field(value)):
                raise ValueError(f"The {name} {value!r} cannot be sent: use printable ASCII characters.")

    def headers(self, target: Target, now: float) -> Headers:
        """The header fields of a request of the target at `now` (Unix seconds)."""
        fields = [(b"User-Agent", self.user_agent.encode("ascii"))]
        if self.from_ is not None:
            fields.append((b"From", self.from_.encode("ascii")))
        if self.signer is not None:
            signed = self.signer.headers(target.origin.authority, target.path, now)
            fields.extend((name.encode("ascii"), value.encode("ascii")) for name, value in signed.items())
        return fields
