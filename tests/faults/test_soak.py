"""`make soak` for a few seconds: every fault once, no leak, and no refusal that the API does not document."""

import httpx
import pytest

from app.api.problem_types import PROBLEMS
from app.api.problems import Problem
from tests.faults.soak import NEEDS_STORE, Tally, soak


async def test_faults_of_store_and_origins_leak_nothing() -> None:
    figures = await soak(4.0, origins=100, fault_seconds=0.2, more_memory=100 * 1024 * 1024)
    assert figures.faults == [], figures
    assert figures.tally.answers["disallow"] > 0
    assert figures.tally.answers["defer"] > 0
    assert len(figures.tally.faults) == 7


@pytest.mark.parametrize("slug", PROBLEMS)
@pytest.mark.parametrize("route", [*sorted(NEEDS_STORE), "GET /v1/allowed", "POST /v1/allowed", "GET /readyz"])
def test_only_what_needs_the_store_may_be_refused(route: str, slug: str) -> None:
    tally = Tally()
    succeeded = tally.note(answer(route, Problem(slug, "No.", retry_after=1)))
    assert not succeeded
    assert (not tally.wrong) == (slug == "store-down" and route in NEEDS_STORE)
    assert tally.refusals.total() == 1


def test_refusal_says_when_to_ask_again() -> None:
    tally = Tally()
    tally.note(answer("DELETE /v1/robots", Problem("store-down", "No.")))
    assert tally.wrong


def test_problem_in_place_of_an_item_is_a_fault() -> None:
    tally = Tally()
    tally.judge({"type": "urn:robots-decisions:problem:busy", "status": 503})
    assert tally.wrong


def answer(route: str, problem: Problem) -> httpx.Response:
    """How the client sees a problem in answer to a request of that route."""
    method, path = route.split()
    response = problem.response()
    request = httpx.Request(method, f"http://localhost{path}")
    return httpx.Response(
        response.status_code, headers=response.headers.items(), content=bytes(response.body), request=request
    )
