"""Lua scripts, which a server is sent by their hash."""

import hashlib
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any, Final

from redis.exceptions import NoScriptError

from app.error_values import as_value
from app.redis.guarded_client import GuardedClient


class Script:
    """The script in these files of a package, one after the other."""

    def __init__(self, package: str, *names: str) -> None:
        self._text: Final = "".join(files(package).joinpath(name).read_text(encoding="utf-8") for name in names)
        self._sha: Final = hashlib.sha1(self._text.encode(), usedforsecurity=False).hexdigest()

    async def run(
        self,
        store: GuardedClient,
        keys: Sequence[str],
        *arguments: str,
        first: Callable[[], Sequence[str]] = tuple,
    ) -> Any:
        """Run the script on the shard of the first key; raises StoreDown.

        `first` gives the arguments before the others when the script is sent: a call may wait for its turn.
        """

        # A server that does not know the hash (new, or flushed) is sent the whole text.
        async def command() -> Any:
            values = (*first(), *arguments)
            try:
                return await store.client.evalsha(self._sha, len(keys), *keys, *values)
            except NoScriptError as error:
                as_value(error)  # redis-py keeps it in one of the frames that it refers to
                return await store.client.eval(self._text, len(keys), *keys, *values)

        return await store.run(keys[0], command)
