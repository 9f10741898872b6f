# scripts/generate.py made this module from _async/service.py; change that one.
"""Requests to the service, over any HTTP library. Failures are raised as Unavailable."""

from collections.abc import Iterator
from contextlib import contextmanager

from robots_decisions._io import Deadline, Http, Reply
from robots_decisions.permits import ANSWER_LIMIT, Response, Unavailable, checked_service, headers, late, not_ours


class Service:
    """The service at a URL. Raises ValueError for an invalid URL or key."""

    def __init__(self, url: str, key: str | None, http: Http) -> None:
        self.url = checked_service(url)
        self._headers = headers(key)
        self._http = http

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def request(self, method: str, path: str, content: bytes | None, timeout: float) -> Response:
        """The whole response, which must arrive within `timeout` seconds."""
        body = bytearray()
        try:
            with Deadline(timeout) as deadline, self.stream(method, path, content, timeout) as reply:
                for piece in reply.pieces:
                    deadline.check()
                    body += piece
                    if len(body) > ANSWER_LIMIT:
                        raise Unavailable(not_ours(f"more than {ANSWER_LIMIT} bytes"))
        except TimeoutError:
            raise late(timeout) from None
        return Response(reply.status, reply.fields, bytes(body))

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        content: bytes | None,
        timeout: float,
        content_type: str = "application/json",
    ) -> Iterator[Reply]:
        """The response, whose pieces may each take `timeout` seconds."""
        fields = {**self._headers, "Content-Type": content_type} if content is not None else self._headers
        with self._http.stream(method, self.url + path, fields, content, timeout) as reply:
            yield reply
