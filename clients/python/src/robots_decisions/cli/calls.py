"""Single requests to the service, one after the other, for commands that ask for one thing."""

import argparse
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from robots_decisions._default_http import default_http
from robots_decisions._sync.service import Service
from robots_decisions.cli.failures import Failed
from robots_decisions.cli.options import API_KEY, unanswered, with_settings
from robots_decisions.parsing import detail, json_value, sentence
from robots_decisions.permits import ANSWER_TIMEOUT, SET_KEY, Unavailable, encode

_SUCCESS = frozenset({200, 201})
_NOTHING = 204
_NO_KEY = 401


class Calls:
    """Requests to the service that the arguments of a command name. Raises Failed for an invalid URL or API key."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        try:
            self._service = Service(arguments.server, os.environ.get(API_KEY) or None, default_http())
        except ValueError as error:
            raise Failed(f"{error}.") from None

    def __enter__(self) -> "Calls":
        return self

    def __exit__(self, *_: object) -> None:
        self._service.close()

    def get(self, path: str, parameters: Mapping[str, Any], *, expected: str) -> dict[str, Any]:
        """GET a path; a list is sent as repeated parameters, and None is not sent. Raise Failed as `call`."""
        given = {name: value for name, value in parameters.items() if value is not None}
        # The shell may pass bytes that are not UTF-8.
        return self.call("GET", f"{path}?{urlencode(given, doseq=True, errors='replace')}", expected=expected)

    def call(
        self, method: str, path: str, message: Mapping[str, Any] | None = None, *, expected: str
    ) -> dict[str, Any]:
        """The JSON object that answers, which has the member `expected`; empty for a 204. Raise Failed for another."""
        url, content = self._service.url, None if message is None else encode(message)
        try:
            response = self._service.request(method, path, content, ANSWER_TIMEOUT)
        except Unavailable as error:
            raise unanswered(url, error.failure) from None
        if response.status == _NOTHING:
            return {}
        answer = json_value(response.body)
        if response.status in _SUCCESS and isinstance(answer, dict) and expected in answer:
            return answer
        said = "" if response.status in _SUCCESS else detail(answer)
        why = f": {sentence(said)}" if said else " with an unexpected body; is it this service?"
        remedy = f" {with_settings(SET_KEY)}" if response.status == _NO_KEY else ""
        raise Failed(f"{url} answers {response.status}{why}{remedy}")
