"""The HTTP library that asks the service unless a crawler names one: the first that is installed."""

from robots_decisions._io import AsyncHttp, Http

_NO_LIBRARY = "robots_decisions found no HTTP library: install robots-decisions with the extra {}."


def default_async_http() -> AsyncHttp:
    """httpx2, httpx or aiohttp. Raise ImportError without any."""
    try:
        from robots_decisions.httpx2 import AsyncHttpx2Http

        return AsyncHttpx2Http()
    except ImportError:
        pass
    try:
        from robots_decisions.httpx import AsyncHttpxHttp

        return AsyncHttpxHttp()
    except ImportError:
        pass
    try:
        from robots_decisions.aiohttp import AiohttpHttp

        return AiohttpHttp()
    except ImportError:
        raise ImportError(_NO_LIBRARY.format("'httpx', 'httpx2' or 'aiohttp'")) from None


def default_http() -> Http:
    """httpx2, httpx or requests. Raise ImportError without any."""
    try:
        from robots_decisions.httpx2 import Httpx2Http

        return Httpx2Http()
    except ImportError:
        pass
    try:
        from robots_decisions.httpx import HttpxHttp

        return HttpxHttp()
    except ImportError:
        pass
    try:
        from robots_decisions.requests import RequestsHttp

        return RequestsHttp()
    except ImportError:
        raise ImportError(_NO_LIBRARY.format("'httpx', 'httpx2' or 'requests'")) from None
