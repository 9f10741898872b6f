"""Every reader of JSON in the store or the archive takes what it cannot use for absent, and raises nothing."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from app.cache.codec import decode, plain, read_facts
from app.cache.compression import compress
from app.cache.freshness import Failing, First, Snapshot
from app.edge.redis_edge import _facts
from app.history.archive.index import Place, read_place
from app.history.archive.span import read_span, span_of
from app.history.change import change_of
from app.history.redis_changes import _parse
from app.overrides.override_json import read_override
from app.overrides.redis_overrides import AuditEntry, Row, _decode, _decode_entry, _encode
from robots_core.origin import read_target
from robots_core.robots.access import Cause, Successful, Unreachable, Validators

APP = Path(__file__).parents[2] / "app"

NOT_STORED = {
    "api/answers/encoding.py": "reads what it wrote itself",
    "decision_log/verify.py": "reads an operator's files; tests/decision_log has its hostile lines",
    "api/sites/sitemap.py": "reads what a helper process wrote",
    "pacing/permit.py": "reads what a caller sends, which is signed; tests/pacing/test_permit.py",
}

ORIGIN = read_target("https://example.com/").origin
FILE = b"User-agent: *\nDisallow: /private/\n"
BUSY = Unreachable(Cause.TOO_MANY_REQUESTS, 429, 120, "a detail")
COPY = Snapshot(
    Successful(200, FILE, content_type="text/plain"),
    1_800_000_000.5,
    "https://www.example.com/robots.txt",
    Validators('"1"', "Sat, 21 Nov 2026 18:30:00 GMT"),
    3600.0,
    Failing(1_800_000_010.0, 1_800_000_700.5, 2, BUSY, First(1_800_000_010.0, BUSY, "crawler")),
    1_700_000_000,
    "crawler",
    1_750_000_000,
)
SPAN, _ = span_of(ORIGIN, COPY)
PLACE = Place(SPAN.digest, SPAN.first_seen, SPAN.last_seen, "b.ndjson", 5, 6, 1_750_000_000)
OVERRIDE = read_override("mine", {"scope": "example.com", "agents": ["examplebot"], "action": "deny", "reason": "So."})
ENTRY = AuditEntry(at=1.0, by="operator", id="mine", before=None, after={"action": "deny"})
CHANGE = change_of(ORIGIN, COPY, Snapshot(Successful(200, b"User-agent: *\nDisallow: /\n"), 1_800_000_900.0))


class Reader(NamedTuple):
    """How one place reads JSON, and what it writes; `read` returns None or nothing for what it cannot use."""

    module: str
    read: Callable[[bytes], Any]
    valid: bytes


def _packed(line: bytes) -> bytes:
    return b"R\x02" + compress(line + b"\n" + FILE)


READERS = {
    "snapshot": Reader("cache/codec.py", lambda data: decode(_packed(data)), plain(COPY).partition(b"\n")[0]),
    "facts": Reader("cache/codec.py", lambda data: read_facts(_packed(data)), plain(COPY).partition(b"\n")[0]),
    "edge": Reader("edge/redis_edge.py", _facts, b'{"a":[402,1,2,3,"","1 USD",2,"/page"],"b":[403,1,2,3,""]}'),
    "change": Reader("history/redis_changes.py", _parse, CHANGE.model_dump_json().encode()),
    "override": Reader(
        "overrides/redis_overrides.py", lambda data: _decode("mine", data), _encode(Row(OVERRIDE, 1.0, "operator"))
    ),
    "audit": Reader("overrides/redis_overrides.py", _decode_entry, ENTRY.model_dump_json().encode()),
    "span": Reader("history/archive/span.py", read_span, SPAN.line()),
    "place": Reader("history/archive/index.py", read_place, msgspec.json.encode(PLACE)),
}

LEAVES: list[Any] = [None, False, 0, -1, 1.5, 10**30, 1e308, "", "x", "x" * 100_000, [], {}, [[[1]]], {"a": {"b": 1}}]
RAW = [b"NaN", b"1e999", b"9" * 5000, rb'"\ud800"', b'"\xff"', b'"\n"', b"[" * 50_000, b'{"a":' * 50_000, b"[1]" * 2]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each container within a value, with a key or an index of it."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for at, inner in list(items):
        yield value, at
        yield from _places(inner)


def _changed(valid: bytes) -> Iterator[bytes]:
    """The JSON with another value at each place, with one more in each container, and without each member."""
    whole = json.loads(valid)
    for container, at in list(_places(whole)):
        before = container[at]
        yield from _with_each(whole, container, at)
        container[at] = before
        if isinstance(container, dict):
            del container[at]
            yield json.dumps(whole).encode()
            yield from _with_each(whole, container, "more")
            del container["more"]
            container[at] = before
        else:
            container.append(None)
            yield from _with_each(whole, container, -1)
            container.pop()
    yield from (*RAW, *(json.dumps(leaf).encode() for leaf in LEAVES))


def _with_each(whole: Any, container: Any, at: Any) -> Iterator[bytes]:
    mark = "replaced by text that is not JSON"
    for leaf in LEAVES:
        container[at] = leaf
        yield json.dumps(whole).encode()
    container[at] = mark
    text = json.dumps(whole).encode()
    yield from (text.replace(json.dumps(mark).encode(), raw) for raw in RAW)


@pytest.mark.parametrize("name", READERS)
def test_no_value_at_any_place_raises(name: str) -> None:
    reader = READERS[name]
    assert reader.read(reader.valid)
    tried = [reader.read(data) for data in _changed(reader.valid)]
    assert not all(tried)


@pytest.mark.parametrize("name", READERS)
def test_what_was_cut_off_is_absent(name: str) -> None:
    reader = READERS[name]
    valid = reader.valid.rstrip(b"\n")
    assert not [at for at in range(len(valid)) if reader.read(valid[:at])]


def test_every_reader_is_among_these() -> None:
    parsing = re.compile(r"json\.(?:Decoder\(|decode\()|model_validate_json\(")
    found = {str(path.relative_to(APP)) for path in APP.rglob("*.py") if parsing.search(path.read_text())}
    assert found == {reader.module for reader in READERS.values()} | NOT_STORED.keys()
