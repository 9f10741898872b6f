"""Lua scripts, which a server is sent by their hash."""

import hashlib
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any, Final

from redis.exceptions import NoScriptError

from app.loop.background import as_value
from app.store.guarded_client import GuardedClient, Send


class Script:
    """A script, all of whose keys are on one shard.

    A server that does not know the hash (it is new, or was flushed) has run nothing and is sent the whole text.
    """

    def __init__(self, text: str) -> None:
        self._text: Final = text
        self._sha: Final = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()

    @classmethod
    def load(cls, package: str, *names: str, **constants: int | str) -> "Script":
        """The script in these files of a package, one after the other, with `constants` as local variables."""
        given = "".join(f"local {name} = {value!r}\n" for name, value in constants.items())
        return cls(given + "".join(files(package).joinpath(name).read_text(encoding="utf-8") for name in names))

    async def run(
        self,
        store: GuardedClient,
        keys: Sequence[str],
        *arguments: str | bytes,
        first: Callable[[], Sequence[str | bytes]] = tuple,
    ) -> Any:
        """Run the script on the shard of the first key; raises StoreDown.

        `first` gives the arguments before the others when the script is sent: a call may wait for its turn.
        """

        async def evaluate(send: Send) -> Any:
            values = (len(keys), *keys, *first(), *arguments)
            try:
                return await send("EVALSHA", self._sha, *values)
            except NoScriptError as error:
                as_value(error)  # redis-py keeps it in one of the frames that it refers to
                return await send("EVAL", self._text, *values)

        return await store.with_calls(keys[0], evaluate)
