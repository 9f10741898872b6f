"""`POST /v1/test`: decide by a pasted robots.txt, or by a simulated outcome of fetching it."""

import json
import logging
from functools import partial

from fastapi import Request, Response

from app.api.caller import caller_of
from app.api.json_bodies import in_parser
from app.api.problems import Problem, documented, unexpected
from app.api.routing import api_router
from app.api.services import services_of
from app.api.trials.reading import Conditions, TrialIn, read
from app.api.trials.rows import TrialOut, trial_json
from app.loop.helpers import TooMuchWork
from app.loop.request import REQUEST_ID

FEW_NAMES = 64
"""URLs and agents of a test that are read on the event loop, in a millisecond or two."""

ROW_SIZE, LONG_ROW_SIZE = 64, 512
"""A row takes as long as so many bytes of a file; the second is for one that is explained, or under an outcome."""

_log = logging.getLogger(__name__)

router = api_router("decisions")


@router.post("/v1/test", response_model=TrialOut, responses={**documented(413, 422, 503)})
async def test(request: Request, test: TrialIn) -> Response:
    """Decide by a pasted robots.txt: one row per URL, agent and dialect. Nothing is fetched or stored.

    With `outcome`, decide as the service would if every fetch of the file had ended so for that long. `explain` is for
    at most 100 rows.
    """
    services = services_of(request)
    conditions = Conditions(services.agents(), services.now(), services.models, services.forbidden)
    body, policy = test.body(), test.policy(caller_of(request.scope).policy(services.policy))
    trial = await in_parser(len(test.urls) + len(test.agents) > FEW_NAMES, read, test, body, conditions, policy)
    gzipped = _takes_gzip(request)
    work = partial(trial_json, gzipped=gzipped)
    arguments = trial, body or b"", unexpected(REQUEST_ID.get() or "").text.encode()
    long_rows = trial.explained or trial.outcome is not None
    size = len(body or b"") + trial.rows * (LONG_ROW_SIZE if long_rows else ROW_SIZE)
    try:
        found = await services.long_work.run(request, size, work, *arguments)
    except TooMuchWork as error:
        raise Problem("too-large", f"{error.limit}; send a smaller file, or fewer rows.") from None
    failure, _, content = found.partition(b"\n")
    if failure != b'""':
        _log.error("a row of a test failed\n%s", json.loads(failure))
    coding = {"Content-Encoding": "gzip"} if gzipped else {}
    return Response(content, media_type="application/json", headers={**coding, "Vary": "Accept-Encoding"})


def _takes_gzip(request: Request) -> bool:
    """Whether the caller decodes gzip (RFC 9110 12.5.3)."""
    codings = (it.partition(";") for it in request.headers.get("accept-encoding", "").lower().split(","))
    weights = {name.strip(): weight.replace(" ", "") for name, _, weight in codings}
    return weights.get("gzip", "q=0").rstrip("0.") != "q="
