"""Sign the requests of pages for which callers get permits. None is signed without a slot."""

import math
from collections.abc import Mapping
from datetime import UTC, datetime

from app.api.caller import Caller
from app.api.problems import Problem
from app.api.services import Services
from app.decisions.evaluate import Question
from app.fetch.profile import FetchProfile
from app.identity.coverage import LABEL, LIFETIME, Mark, is_exact_host, new_nonce
from app.pacing.permits import Sign, Signing, Unsigned
from app.pacing.slots import Slot
from robots_core.times import rfc3339

FARTHEST_SLOT = 300.0
"""Seconds to the farthest slot that a request is signed for, since a signature cannot be called back."""


def prepare(
    question: Question, url: str, wanted: str | None, caller: Caller, services: Services
) -> tuple[Question, Sign]:
    """The question with the nonce that is logged with its decision, and what signs the request for its slot.

    `url` is the URL as the caller wrote it, `wanted` the Accept-Signature of its page, if any. Raises Problem if the
    API key may not sign as the agent's profile.
    """
    name = question.agent.profile
    profile = None if name is None else services.profiles().get(name)
    if name is None or profile is None or profile.signer is None:
        return question, _never("no-key")
    if not caller.may_sign(name):
        raise Problem(
            "may-not-sign",
            f"The API key {caller.id!r} may not sign as the profile {name!r} of {question.agent.token!r}. Ask the "
            f"operator of this service to add it to the key's `sign`, or ask without `sign`.",
        )
    if question.target.origin.scheme != "https":
        return question, _never("not-https")
    if not is_exact_host(url, question.target.origin):
        return question, _never("ambiguous-host")
    authority, path, mark = question.target.origin.authority, question.target.path, Mark(LABEL, new_nonce())
    if wanted is not None:
        fulfilling = profile.signer.mark_wanted(wanted, path)
        if fulfilling is None:
            return question, _never("not-as-asked")
        mark = fulfilling

    def sign(slot: Slot) -> Signing:
        if slot.wait > FARTHEST_SLOT:
            return Signing(None, "too-far")
        if not caller.may_sign(name):
            return Signing(None, "key-revoked")
        profile = services.profiles().get(name)
        if profile is None or profile.signer is None:
            return Signing(None, "no-key")
        services.metrics.permit_signed(name)
        signature = profile.signer.headers(authority, path, slot.go_at, mark)
        return Signing(_signed(profile, signature, authority, slot), None)

    return question._replace(nonce=mark.nonce), sign


def _never(reason: Unsigned) -> Sign:
    return lambda _slot: Signing(None, reason)


def _signed(profile: FetchProfile, signature: Mapping[str, str], authority: str, slot: Slot) -> Mapping[str, object]:
    """The members of SignedOut."""
    who = {"User-Agent": profile.user_agent, **({} if profile.from_ is None else {"From": profile.from_})}
    expires = rfc3339(datetime.fromtimestamp(math.floor(slot.go_at) + LIFETIME, UTC))
    return {"headers": {**signature, **who}, "method": "GET", "host": authority, "expires": expires}
