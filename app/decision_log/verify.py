"""Verify a decision log: that no line is missing, changed or moved, and that each is decided again as it says.

Nothing is asked but the lines and an archive: no service, no store, and no clock.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, NamedTuple

import msgspec

from app.cache.byte_lru import ByteLRU
from app.cache.result import CacheResult, Source
from app.decision_log.chain import SIGNATURE
from app.decision_log.line import DIGEST_DIGITS, rule_named
from app.decisions.evaluate import CachedFile, Decision, Question, evaluate, judge_policy
from app.history.archive.archive import Archive
from robots_core.file import File
from robots_core.origin import BadUrl, Origin, read_target
from robots_core.purposes.policy import PurposePolicy, UnknownPurpose, read_purposes
from robots_core.robots.agents import Agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.robots_txt import ROBOTS_PATH
from robots_core.robots.verdict import Permission, Reason, Verdict

FILE_BYTES: Final = 256 * 1024 * 1024
"""Bytes of parsed files in memory."""

_UNFETCHED: Final = {
    Reason.PENDING: Permission.DEFER,
    Reason.UNREACHABLE: Permission.DEFER,
    Reason.CHALLENGE: Permission.DEFER,
    Reason.BLOCKED_ADDRESS: Permission.DISALLOW,
}
"""The verdicts without a version, by their reasons."""

_ACTIONS: Final = {"allow": Permission.ALLOW, "deny": Permission.DISALLOW}


class Fault(NamedTuple):
    """A line with a fault: its file and number, and what is wrong."""

    place: str
    fault: str


class _Undecidable(Exception):
    """A line that says too little to decide it again; the text says what."""


@dataclass(slots=True)
class _Process:
    """The last line of a process, and how many lines there are since one that was signed."""

    number: int
    hash: str
    place: str
    ended: bool
    signed: bool
    unsigned: int


class _ReadsAs(msgspec.Struct):
    """How a crawler reads files, if not by its token alone."""

    chain: tuple[str, ...]
    names: tuple[str, ...]
    star: bool


class _Line(msgspec.Struct):
    """What a line says of the question and of what decided it; see app.decision_log.line."""

    agent: str
    dialect: str
    reason: Reason
    version: str | None
    digest: str | None = None
    url: str | None = None
    override: str | None = None
    action: str | None = None
    profile: str | None = None
    reads_as: _ReadsAs | None = None
    enforced: tuple[str, ...] | None = None
    on_forbidden: str | None = None
    archived: bool = True


class LogVerifier:
    """Verifies lines in the order of their files, the oldest first; `counts` has the lines by what was done.

    `is_signed` tells whether a signature, in Base64, is that of a text; None if signatures are not looked at.
    """

    def __init__(
        self, archive: Archive, is_signed: Callable[[bytes, bytes], bool] | None = None, *, partial: bool = False
    ) -> None:
        """`partial`: the files may begin after a process has, and before it has ended."""
        self._archive = archive
        self._is_signed = is_signed
        self._partial = partial
        self._processes: dict[str, _Process] = {}
        self._named: dict[str, tuple[int, str]] = {}  # the last line that a mark names of a process, and where
        self._name = "the log"
        self._files: ByteLRU[tuple[Origin, str], CachedFile] = ByteLRU(FILE_BYTES)
        self.counts: Counter[str] = Counter()

    def verify(self, name: str, lines: Iterable[bytes]) -> Iterator[Fault]:
        """The faults of the lines of one file; raises OSError if the archive cannot be read."""
        self._name = name
        for number, line in enumerate(lines, 1):
            place = f"{name}:{number}"
            if not line:
                continue  # it ends one that was written in part
            self.counts["lines"] += 1
            try:
                members: Any = msgspec.json.decode(line)
            except (ValueError, RecursionError):
                yield Fault(place, "the line cannot be read: it was changed, or written in part")
                continue
            match members:
                case {"process": str(process), "number": int(own), "previous": str(previous)} if own > 0:
                    yield from self._linked(place, line, process, own, previous, members.get("mark"))
                    if "mark" in members:
                        yield from self._marked(place, line, self._processes[process], members.get("beside"))
                    else:
                        yield from self._decided(place, members)
                case _:
                    yield Fault(place, "the line has no link: it was changed, or written by an earlier release")

    def end(self) -> Iterator[Fault]:
        """The faults that only the end of the last file shows."""
        if self._is_signed is not None and not self.counts["lines"]:
            yield Fault(self._name, "nothing is signed: there are no lines")
        for name, (number, place) in self._named.items():
            if name not in self._processes and not self._partial:
                yield Fault(place, f"lines 1 to {number} of process {name} are missing, which this mark names")
        for name, process in self._processes.items():
            if not process.ended and not self._partial:
                yield Fault(process.place, f"lines are missing after this one: process {name} has no end")
            elif self._is_signed is not None and not process.signed:
                yield Fault(process.place, f"nothing is signed of process {name}: give the file after this one, too")
            self.counts["unsigned"] += process.unsigned

    def _linked(self, place: str, line: bytes, name: str, number: int, previous: str, mark: object) -> Iterator[Fault]:
        before = self._processes.get(name)
        if before is None:
            if number == 1 and previous:
                yield Fault(place, "the line was changed: it is the first of its process, and names one before")
            elif number > 1 and not self._partial:
                yield Fault(place, f"lines 1 to {number - 1} of process {name} are missing before it")
        elif number > before.number + 1:
            yield Fault(place, f"lines {before.number + 1} to {number - 1} of process {name} are missing before it")
        elif number <= before.number:
            yield Fault(place, f"the line was moved or repeated: line {before.number} of process {name} is before it")
        elif previous != before.hash:
            yield Fault(place, f"the line before it ({before.place}) was changed, or its own link")
        if before is None or number > before.number:
            signed, unsigned = (False, 0) if before is None else (before.signed, before.unsigned)
            digest = sha256(line).hexdigest()
            self._processes[name] = _Process(number, digest, place, mark == "end", signed, unsigned + 1)

    def _marked(self, place: str, line: bytes, process: _Process, beside: object) -> Iterator[Fault]:
        self.counts["marks"] += 1
        for name, number in beside.items() if isinstance(beside, dict) else ():
            if isinstance(number, int) and number > self._named.get(name, (0, ""))[0]:
                self._named[name] = number, place
        if self._is_signed is None:
            return
        text, found, signature = line.rpartition(SIGNATURE)
        if not found or not signature.endswith(b'"}') or not self._is_signed(text + b"}", signature[:-2]):
            yield Fault(place, "its signature is missing or wrong")
        else:
            self.counts["signed"] += 1
            process.signed, process.unsigned = True, 0

    def _decided(self, place: str, members: dict[str, Any]) -> Iterator[Fault]:
        try:
            expected = self._again(msgspec.convert(members, _Line))
        except _Undecidable as error:
            self.counts["undecided"] += 1
            yield Fault(place, f"it cannot be decided again: {error}")
            return
        except (BadUrl, UnknownPurpose, LookupError, ValueError) as error:
            yield Fault(place, f"the line was changed, or cannot be read: {type(error).__name__}: {error}")
            return
        self.counts["decided"] += 1
        logged = {name: members.get(name) for name in expected}
        if logged != expected:
            yield Fault(place, f"it is decided otherwise: {_text(expected)}, not {_text(logged)}")

    def _again(self, line: _Line) -> dict[str, object]:
        """The members of a line that a decision determines, decided again."""
        reason = line.reason
        if line.url is None:
            raise _Undecidable("it has no URL (DECISION_LOG_URL)")
        target = read_target(line.url)
        overriding = None
        if reason is Reason.OVERRIDDEN or line.action is not None:
            overriding = _ACTIONS.get(line.action or "")
            if overriding is None:
                raise _Undecidable(f"the file of the override {line.override} decided")
            # The site's file matters only for a page that is allowed, and refused for its usage.
            if line.version is None or line.enforced is None:
                return _without_rule(overriding, Reason.OVERRIDDEN)
        if reason is Reason.IMPLICIT and target.path == ROBOTS_PATH:
            return _without_rule(Permission.ALLOW, reason)
        if line.version is None:
            return _without_rule(_UNFETCHED[reason], reason)
        question = Question(target, _agent(line), DIALECTS[line.dialect])
        digest = line.digest or ""
        if len(digest) != DIGEST_DIGITS or not (line.version and digest.startswith(line.version)):
            raise ValueError("the digest is not that of the version")
        file = self._file(target.origin.with_profile(line.profile), digest, archived=line.archived)
        decision = evaluate(question, file, 0.0, forbidden=line.on_forbidden == "deny")
        if overriding is not None:
            verdict = Verdict(overriding, Reason.OVERRIDDEN, None, decision.verdict.selection)
            decision = decision._replace(verdict=verdict)
        return _members(decision, line.enforced)

    def _file(self, origin: Origin, version: str, *, archived: bool) -> CachedFile:
        """The file of the version whose digest begins so."""
        file = self._files.get((origin, version))
        if file is None:
            found = self._archive.past(origin).by_id(version)
            snapshot = None if found is None else found.read()
            if snapshot is None:
                known = "" if archived else ", and had none when the line was written"
                raise _Undecidable(f"the archive has no version {version} of {origin.key}{known}")
            robots = File(snapshot.access).robots
            file = CachedFile(CacheResult(snapshot, None, Source.HISTORY), robots, version=version)
            self._files.put((origin, version), file, 1024 if robots is None else robots.size)
        return file


def _members(decision: Decision, enforced: Sequence[str] | None) -> dict[str, object]:
    if enforced is not None:
        decision = judge_policy(decision, PurposePolicy(read_purposes(enforced), enforce=True))
    verdict = decision.verdict
    return {"verdict": verdict.permission, "reason": verdict.reason, **rule_named(verdict)}


def _without_rule(permission: Permission, reason: Reason) -> dict[str, object]:
    return {"verdict": permission, "reason": reason, "line": None, "rule": None}


def _agent(line: _Line) -> Agent:
    reads_as = line.reads_as
    if reads_as is None:
        return _plain_agent(line.agent)
    return Agent(line.agent, reads_as.names, chain=reads_as.chain, star=reads_as.star)


@lru_cache(1024)
def _plain_agent(token: str) -> Agent:
    return Agent(token, (token.lower(),), chain=(token.lower(),))


def _text(members: dict[str, object]) -> str:
    rule = f", line {members['line']}: {members['rule']}" if members["rule"] else ""
    return f"{members['verdict']} ({members['reason']}{rule})"
