"""Errors of the client reach other processes whole."""

import copy
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from types import ModuleType
from typing import TypeAlias

import pytest
from robots_decisions import aiohttp, errors, httpx, httpx2, requests
from robots_decisions.errors import ErrorTypes, PermitError
from robots_decisions.permits import Denied, InvalidQuestion, NoAnswer, RetryLater

Failure: TypeAlias = Denied | RetryLater | InvalidQuestion | NoAnswer

ANSWERS: list[Failure] = [
    Denied("rule", "disallow: /", 2, "Line 2 disallows it."),
    RetryLater(7.0, "pace"),
    InvalidQuestion("422: No."),
    NoAnswer("is silent."),
    NoAnswer("answers 404.", "Set the URL."),
]


def error_of(module: ModuleType, answer: Failure) -> PermitError:
    names = ("Disallowed", "Deferred", "NotUnderstood", "ServiceUnavailable", "Misconfigured")
    return ErrorTypes(*(getattr(module, name) for name in names)).error("http://h/", "http://service", answer)


def fail(answer: Failure) -> None:
    raise error_of(errors, answer)


@pytest.mark.parametrize("module", [errors, aiohttp, httpx, httpx2, requests], ids=lambda module: module.__name__)
@pytest.mark.parametrize("answer", ANSWERS, ids=repr)
def test_errors_are_pickled_and_copied(module: ModuleType, answer: Failure) -> None:
    error = error_of(module, answer)
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(other) is type(error)
        assert (str(other), vars(other)) == (str(error), vars(error))


def test_an_error_of_a_worker_does_not_break_its_pool() -> None:
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        for answer in ANSWERS:
            with pytest.raises(PermitError, match="http://service"):
                pool.submit(fail, answer).result(60)
