"""The header fields of a request that the service signed. No I/O."""

import re
from collections.abc import Mapping, MutableMapping
from typing import Any, Final

SIGNATURE_FIELDS: Final = ("Signature-Agent", "Signature-Input", "Signature")
"""The fields of a signature. They hold for one request, and libraries carry them to the next host of a redirect."""

_SENT_WITH_IT: Final = frozenset({*SIGNATURE_FIELDS, "User-Agent", "From"})
_VALUE = re.compile(r"[!-~](?:[ -~]{0,4094}[!-~])?")


def signed_of(message: Mapping[str, object]) -> Mapping[str, str] | None:
    """The fields in the answer of a permit; None if it has no signature of a GET, or one that cannot be sent."""
    signed = message.get("signed")
    if not isinstance(signed, dict) or signed.get("method") != "GET":
        return None
    fields = signed.get("headers")
    if not isinstance(fields, dict) or not _SENT_WITH_IT >= fields.keys() >= set(SIGNATURE_FIELDS):
        return None
    for value in fields.values():
        if not isinstance(value, str) or not _VALUE.fullmatch(value):
            return None
    return fields


def sign_request(method: str, headers: MutableMapping[str, Any], signed: Mapping[str, str] | None) -> None:
    """Set the fields of a signature in place of those that the request has, which are of the page before.

    `headers` takes names in any case. A signature is of a GET; without one, the fields are deleted.
    """
    for name in SIGNATURE_FIELDS:
        headers.pop(name, None)
    if signed is not None and method.upper() == "GET":
        for name, value in signed.items():
            headers[name] = value
