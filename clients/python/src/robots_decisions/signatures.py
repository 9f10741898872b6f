"""The header fields of a request that the service signed. No I/O."""

import re
from collections.abc import Mapping, MutableMapping
from typing import Any, Final

SIGNATURE_FIELDS: Final = ("Signature-Agent", "Signature-Input", "Signature")
"""The fields of a signature. They hold for one request, and libraries carry them to the next host of a redirect."""

ASKING: Final = frozenset({401, 403, 429})
"""Statuses of a page that may ask for a signature."""

_SENT_WITH_IT: Final = frozenset({*SIGNATURE_FIELDS, "User-Agent", "From"})
_VALUE = re.compile(r"[!-~](?:[ -~]{0,4094}[!-~])?")


def signed_of(message: Mapping[str, object]) -> Mapping[str, str] | None:
    """The fields in the answer of a permit; None without a signature, or if it cannot be sent with a GET."""
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


def asked_signature(method: str, status: int, fields: Mapping[str, str]) -> str | None:
    """The Accept-Signature of a page that wants its GET to be signed (RFC 9421 5.1); None for other responses."""
    if method.upper() != "GET" or status not in ASKING:
        return None
    return fields.get("Accept-Signature")


def sign_request(method: str, headers: MutableMapping[str, Any], signed: Mapping[str, str] | None) -> None:
    """Set the fields of a signature in place of those that the request has, which are of the page before.

    `headers` takes names in any case. A signature is of a GET; without one, the fields are deleted.
    """
    for name in SIGNATURE_FIELDS:
        headers.pop(name, None)
    if signed is not None and method.upper() == "GET":
        for name, value in signed.items():
            headers[name] = value
