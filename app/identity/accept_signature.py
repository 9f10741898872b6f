"""What a site asks for in Accept-Signature (RFC 9421 5.1): a field of a response whose page wants a signed request."""

from typing import Any

import http_sf

from app.identity.coverage import TAG, Mark, new_nonce


def mark_wanted(field: str, key_id: str, covered: set[str]) -> Mark | None:
    """The mark of the first signature that the field asks for and that the key can make; None if there is none.

    The signature covers the components that `covered` names, which may be more than the site asks for.
    """
    try:
        members: Any = http_sf.parse(field.encode(), tltype="dictionary")
    except ValueError:
        return None
    for label, (components, parameters) in members.items():
        nonce = parameters.get("nonce") or new_nonce()
        if (
            isinstance(components, list)
            and {name for name, _ in components} <= covered
            and parameters.get("tag") == TAG
            and parameters.get("keyid", key_id) == key_id
            and parameters.get("alg", "ed25519") == "ed25519"
            and isinstance(nonce, str)
            and len(nonce) <= 256
            and not {'"', "\\"} & set(nonce)  # so that it is written without escapes
        ):
            return Mark(label, nonce)
    return None
