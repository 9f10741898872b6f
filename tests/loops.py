"""The event loops that the service may run on; they call a protocol in different ways."""

import asyncio
from collections.abc import Callable, Mapping

import uvloop

DEFAULT: Mapping[str, Callable[[], asyncio.AbstractEventLoop]] = {"asyncio": asyncio.new_event_loop}

LOOPS: Mapping[str, Callable[[], asyncio.AbstractEventLoop]] = {**DEFAULT, "uvloop": uvloop.new_event_loop}
