"""Link the lines of a process, so that one that is changed, dropped or moved later is found.

Each line ends with the `process` that wrote it, its `number` there, and `previous`: the SHA-256 of the line before. The
chain goes on in the next file when the log is rotated, and ends with a mark. With a key, it begins with a mark, and a
further one follows every minute. Marks are signed: without the key, no line before one can be removed or rewritten
unnoticed. They name the last line of each other process that is in the log, so that none can be removed whole.
"""

import base64
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from types import MappingProxyType
from typing import Final, Literal

from app.observability.logs import timestamp

CHECKPOINT_EVERY: Final = 60.0
"""Seconds from one signed checkpoint to the next, if there were lines."""

SIGNATURE: Final = b',"signature":"'
"""What begins the signature at the end of a mark; all before it, and `}`, is signed."""

Mark = Literal["begin", "checkpoint", "end"]


class Chain:
    """Links lines as they are written. `sign` makes an Ed25519 signature, None for a log without a key."""

    def __init__(self, process: str, clock: Callable[[], float], sign: Callable[[bytes], bytes] | None = None) -> None:
        """`process` names this process among all that write to the log; `clock` is in Unix seconds.

        `number` is that of the last line, 0 before the first.
        """
        self._name = process
        self._process = json.dumps(process).encode()
        self._clock = clock
        self._sign = sign
        self.number = 0
        self._previous = ""
        self._before = 0, ""
        self._lost = 0
        self._checked = (0, clock())

    def link(self, lines: Sequence[bytes]) -> list[bytes]:
        """The lines, each an object of JSON, with their links."""
        self._before = self.number, self._previous
        return [self._linked(line) for line in lines]

    def unlink(self, linked: Sequence[bytes], written: int) -> None:
        """Go on after the first `written` of the lines that were linked last, since the others were lost."""
        self._lost += len(linked) - written
        number, previous = self._before
        self.number = number + written
        self._previous = sha256(linked[written - 1]).hexdigest() if written else previous
        checked, at = self._checked
        if checked > self.number:  # the mark was lost: the lines before it are still to be signed for
            self._checked = 0, at

    @property
    def is_to_begin(self) -> bool:
        """Whether a mark is to be the first line."""
        return self._sign is not None and self.number == 0

    @property
    def checkpoint_is_due(self) -> bool:
        """Whether there are lines to sign for."""
        number, at = self._checked
        return self._sign is not None and number < self.number and self._clock() >= at + CHECKPOINT_EVERY

    def mark(self, kind: Mark, beside: Mapping[str, int] = MappingProxyType({})) -> bytes:
        """The beginning or the end of the chain or a checkpoint, linked and signed.

        `lost`: lines that could not be written so far. `beside`: the number of the last line of each other process.
        """
        now, self._before = self._clock(), (self.number, self._previous)
        others = {name: number for name, number in beside.items() if name != self._name}
        members = {"time": timestamp(now), "mark": kind, "lost": self._lost, "beside": others}
        line = json.dumps(members, separators=(",", ":")).encode()[:-1] + self._links()
        if self._sign is not None:
            signature = base64.b64encode(self._sign(line))
            line = line[:-1] + SIGNATURE + signature + b'"}'
        self._advance(line)
        self._checked = self.number, now
        return line

    def _linked(self, line: bytes) -> bytes:
        linked = line[:-1] + self._links()
        self._advance(linked)
        return linked

    def _links(self) -> bytes:
        return b',"process":%s,"number":%d,"previous":"%s"}' % (
            self._process,
            self.number + 1,
            self._previous.encode(),
        )

    def _advance(self, line: bytes) -> None:
        self.number += 1
        self._previous = sha256(line).hexdigest()


_LAST_MEMBERS: Final = re.compile(rb',"process":("[^"]*"),"number":([0-9]+),"previous":"')


def last_of_each(lines: Iterable[bytes]) -> dict[str, int]:
    """The number of the last line of each process in these lines, which may begin or end within one."""
    found: dict[str, int] = {}
    for line in lines:
        members = _LAST_MEMBERS.search(line)
        if members is not None:
            name = json.loads(members[1])
            found[name] = max(found.get(name, 0), int(members[2]))
    return found
