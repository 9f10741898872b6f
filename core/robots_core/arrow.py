"""Decide Arrow batches of URLs by a bundle: a table of origins and their files.

    bundle = Bundle.open("bundle.parquet")
    for batch in decide_batches(batches, bundle):
        ...

A batch has the columns `url` and `agent`, and any others; each comes back with the columns of SCHEMA added. Rows may
be in any order: many are decided together, file by file. `decide` gives the answers to one batch. Requires pyarrow.
"""

import gc
import warnings
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate, chain, islice
from os import PathLike
from threading import Lock
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from robots_core.file import Decision, File, decision, dialect_named, dialect_of, outcome, read
from robots_core.origin import BadUrl, Origin, read_target
from robots_core.outcomes import BadOutcome
from robots_core.purposes.policy import read_purposes
from robots_core.robots._native.batches import first_of_each, split
from robots_core.robots._native.matching import Matcher
from robots_core.robots.agents import Agent, BadAgent, agent_of, known_agents, read_agent
from robots_core.robots.dialects.dialect import Dialect
from robots_core.robots.lines import Key, readable
from robots_core.robots.rates import Rate
from robots_core.robots.robots_txt import ROBOTS_PATH, AgentRules
from robots_core.robots.verdict import Permission, Reason

SCHEMA: Final = pa.schema(
    [
        ("verdict", pa.string()),
        ("reason", pa.string()),
        ("rule", pa.string()),
        ("line", pa.int32()),
        ("interval", pa.float64()),
        ("version", pa.string()),
    ]
)
"""The columns of answers.

`verdict` is allow, disallow or defer, null if the URL or the agent cannot be read. `reason` is as in a Decision, or one
of the three below. `interval` is in seconds, and `version` is that of the file, from the bundle.
"""

_REASON: Final = SCHEMA.get_field_index("reason")

UNKNOWN_ORIGIN: Final = "unknown_origin"
"""The reason of a defer for an origin that the bundle lacks."""

BAD_URL: Final = "bad_url"
BAD_AGENT: Final = "bad_agent"
"""The reasons of rows without a verdict."""

BUNDLE_SCHEMA: Final = pa.schema(
    [
        ("origin", pa.string()),
        ("profile", pa.string()),
        ("valid_from", pa.timestamp("us", "UTC")),
        ("valid_until", pa.timestamp("us", "UTC")),
        ("outcome", pa.string()),
        ("version", pa.string()),
        ("truncated", pa.bool_()),
        ("body", pa.binary()),
    ]
)
"""The columns of a bundle: a row for each origin, and each fetch profile that it was fetched with.

`outcome` is the status, or why there was no response to read (robots_core.outcomes). `body` is null if that brought no
file. `profile` and `version` may be null. A bundle needs `origin`, `outcome` and `body` only.
"""

MADE_AT: Final = b"robots_core.made_at"
"""The key of a bundle's metadata that has the instant for which it was made (ISO 8601, UTC)."""

FORM: Final = b"robots_core.bundle"
"""The key of a bundle's metadata that has the version of its form, which is 1."""

KEEP_BYTES: Final = 3 << 29
"""Bytes of the parsed files that a bundle keeps, with what was found in them for agents (RobotsTxt.memory)."""

GROUP_BYTES: Final = 1 << 25
"""Bytes of row groups of a file that stay in memory, at most, but for the last one that was read."""

ROWS: Final = 500_000
"""Rows that are decided together, by default: a file is read at most once for them."""

URL_BYTES: Final = 1 << 29
"""Bytes of the URLs that are decided together, at most, but for a single one: Arrow's offsets have 32 bits."""

_FILE_BYTES: Final = 900  # of a file that is kept, beside RobotsTxt.memory
_GROUP_BYTES: Final = 400  # of each group that decides by it
_AGENT_BYTES: Final = 60  # of each agent whose group was found
_SLICE_BYTES: Final = 1 << 25  # of the files that are parsed for a slice, about; they last as long as it
_SLICE_PAIRS: Final = 65_536
_AGENTS: Final = 4096  # distinct texts of agents between two clearings
_BEGINNINGS: Final = 200_000  # distinct beginnings of URLs between two clearings
_FAR: Final = 1 << 32
_ROBOTS_TXT: Final = -3
_LOWEST: Final = 8  # more than a number of first_of_each is below 0
_NONE, _UNREAD = -1, -2  # in place of a row: the bundle lacks the origin; the URL has none
_BODIES: Final = frozenset({"binary", "large_binary", "binary_view", "null"})  # null: of a table without any file

AgentRows = Mapping[str, Mapping[str, Any]]
"""Crawlers by their tokens, with fields of AgentRow: the tables `agents` of a service's AGENTS_FILE."""

_Row = tuple[str | None, str | None, str | None, int | None, float | None, str | None]
_NO_URL: Final[_Row] = (None, BAD_URL, None, None, None, None)
_NO_AGENT: Final[_Row] = (None, BAD_AGENT, None, None, None, None)
_UNKNOWN: Final[_Row] = ("defer", UNKNOWN_ORIGIN, None, None, None, None)


class MissingOrigins(LookupError):
    """A batch has origins that the bundle lacks; the message names some."""


@dataclass(frozen=True, kw_only=True)
class _Options:
    """The arguments of `decide` that are the same for all rows. Raises as `decide` does."""

    dialect: str | None = None
    purpose: str | Sequence[str] = ()
    at: datetime | None = None
    profile: str | None = None
    forbidden: bool = False
    agents: AgentRows | None = None
    missing: str = field(default="defer", compare=False)

    def __post_init__(self) -> None:
        if self.missing not in ("defer", "error"):
            raise ValueError(f"missing is 'defer' or 'error', not {self.missing!r}")
        if self.dialect is not None:
            dialect_named(self.dialect)
        purposes = (self.purpose,) if isinstance(self.purpose, str) else self.purpose
        object.__setattr__(self, "purpose", read_purposes(purposes))
        for token, row in (self.agents or {}).items():
            dialect_of(None, agent_of(token, row))


class _Reader(NamedTuple):
    """An agent, the dialect in which it reads files, and the fetch profile whose files decide for it."""

    agent: Agent
    dialect: Dialect
    profile: str | None


class _Kept:
    """A parsed file of a bundle, with what decides for the agents of these numbers.

    Agents that are bound by the groups of one token share it: `shared` has it by dialect, token, and Agent.star_delay.
    """

    __slots__ = ("counted", "file", "groups", "shared", "version")

    def __init__(self, file: File, version: str | None) -> None:
        self.file = file
        self.version = version
        self.groups: dict[int, _OfAgent] = {}
        self.shared: dict[tuple[str, str | None, bool], _OfAgent] = {}
        self.counted = 0  # bytes, when last looked at

    @property
    def memory(self) -> int:
        """The bytes of memory that it takes now, about."""
        found = _FILE_BYTES + _GROUP_BYTES * len(self.shared) + _AGENT_BYTES * len(self.groups)
        return found + (0 if self.file.robots is None else self.file.robots.memory)


class _OfAgent:
    """What decides for an agent, and those like it, on an origin.

    That is one answer, or rules, or each row.
    """

    __slots__ = ("agent", "constant", "file", "plain", "rate", "rules", "version", "with_query")

    def __init__(
        self,
        constant: _Row | None = None,
        kept: _Kept | None = None,
        agent: Agent | None = None,
        rules: AgentRules | None = None,
        rate: Rate | None = None,
    ) -> None:
        self.constant, self.agent, self.rules, self.rate = constant, agent, rules, rate
        # Not `kept`, which has this: a cycle would keep the file until the collector runs.
        self.file = None if kept is None else kept.file
        self.version = None if kept is None else kept.version
        self.plain: Matcher | None = None
        self.with_query: Matcher | None = None
        if rules is not None:
            self.plain, self.with_query = rules.ruleset.matcher, rules.ruleset.with_query


class _FileOfBodies:
    """The bodies of a Parquet file, whose row groups are read when they are needed; the last used stay in memory."""

    def __init__(self, file: pq.ParquetFile) -> None:
        self._file = file
        counts = (file.metadata.row_group(group).num_rows for group in range(file.num_row_groups))
        self._starts = [0, *accumulate(counts)]
        self._groups: OrderedDict[int, pa.ChunkedArray] = OrderedDict()
        self._size = 0

    def __getitem__(self, row: int) -> Any:
        number = bisect_right(self._starts, row) - 1
        group = self._groups.get(number)
        if group is None:
            group = self._groups[number] = self._file.read_row_group(number, columns=["body"]).column("body")
            self._size += group.nbytes
            while self._size > GROUP_BYTES and len(self._groups) > 1:
                self._size -= self._groups.popitem(last=False)[1].nbytes
        else:
            self._groups.move_to_end(number)
        return group[row - self._starts[number]]

    def read(self) -> pa.ChunkedArray:
        """All bodies."""
        return self._file.read(["body"]).column("body")


class Bundle:
    """Origins and their files. Parsed files are kept up to `keep_bytes`, the last used.

    The bodies of a table stay in Arrow's memory, and those of a file are read by row groups when they are needed. What
    was found is kept for one set of `decide`'s arguments: make a bundle of the same table for another. Any number
    of threads may use it, one at a time. A pickled bundle has the whole table, and no parsed file.
    """

    def __init__(self, table: pa.Table, *, keep_bytes: int = KEEP_BYTES) -> None:
        """A bundle in memory, as BUNDLE_SCHEMA has it. Raises ValueError if the table is none."""
        _check(table.schema)
        self._begin(table, keep_bytes, table.column("body"))

    def _begin(self, table: pa.Table, keep_bytes: int, bodies: Any) -> None:
        self._bodies = bodies
        names = table.column("origin").cast(pa.large_string())
        if names.null_count:
            raise ValueError("A row of the bundle has no origin.")
        if "profile" in table.column_names:
            profiles = table.column("profile").cast(pa.large_string())
            separator = pa.scalar("#", pa.large_string())
            names = pc.binary_join_element_wise(names, profiles, separator, null_handling="skip")
        self.table = table
        self.keep_bytes = keep_bytes
        self.parsed = 0
        """How many files were parsed: more than the bundle has, if `keep_bytes` is too small for the order of rows.

        There is a RuntimeWarning when it passes twice the bundle with the same arguments of `decide`.
        """
        self.read_bytes = 0
        """Bytes of all files that were parsed, and of what was found for agents, as `keep_bytes` counts them."""
        self._names = names = names.combine_chunks()
        # Names are compared as bytes, which sort as their texts do: an Arrow value for each would take far longer.
        _, offsets, text = names.buffers()
        self._ends = memoryview(offsets or bytes(8)).cast("q")[names.offset :]
        self._text = memoryview(text or b"")
        # To find a value in a column takes the longer, the more chunks it has.
        read = {"outcome", "truncated", "version"} & {*table.column_names}
        self._columns = {name: table.column(name).combine_chunks() for name in read}
        self._order: pa.Array | None = None
        if table.num_rows > 1 and not pc.all(pc.less(self._names[:-1], self._names[1:])).as_py():
            self._order = pc.sort_indices(self._names)
        made_at = (table.schema.metadata or {}).get(MADE_AT)
        self.made_at = (
            datetime.now(UTC) if made_at is None else datetime.fromisoformat(made_at.decode()).astimezone(UTC)
        )
        self._kept: OrderedDict[int, _Kept] = OrderedDict()
        self._grown: _Kept | None = None
        self._size = self._parsed_now = 0
        self._decider: _Decider | None = None
        self._lock = Lock()

    @classmethod
    def open(
        cls, path: str | PathLike[str], *, origins: Sequence[str] | None = None, keep_bytes: int = KEEP_BYTES
    ) -> "Bundle":
        """The bundle in a Parquet file, whose bodies are read when they are needed.

        Or, in memory, only the rows of some `origins`: row groups that have none of them by their statistics are not
        read. Raises ValueError if the file is no bundle.
        """
        file = pq.ParquetFile(path)
        _check(file.schema_arrow)
        if origins is not None:
            return cls(_rows_of(file, sorted(set(origins))), keep_bytes=keep_bytes)
        bundle = cls.__new__(cls)
        table = file.read([name for name in file.schema_arrow.names if name != "body"])
        bundle._begin(table, keep_bytes, _FileOfBodies(file))
        return bundle

    def __reduce__(self) -> tuple[Any, ...]:
        table = self.table
        if self.is_read_in_groups:
            table = table.append_column("body", self._bodies.read())
        return _bundle, (table, self.keep_bytes)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @property
    def is_read_in_groups(self) -> bool:
        """Whether the bodies are in a file, of which row groups are read when they are needed."""
        return isinstance(self._bodies, _FileOfBodies)

    def row(self, origin: Origin) -> int:
        """The row of an origin, with the fetch profile that it has; -1 if there is none."""
        name = origin.key.encode()
        place = bisect_left(range(len(self)), name, key=self._name)
        return self._place(place) if place < len(self) and self._name(place) == name else _NONE

    def _place(self, place: int) -> int:
        return place if self._order is None else int(self._order[place].as_py())

    def _name(self, place: int) -> bytes:
        row = place if self._order is None else self._place(place)
        return bytes(self._text[self._ends[row] : self._ends[row + 1]])

    def _value(self, name: str, row: int) -> Any:
        return self._columns[name][row].as_py() if name in self._columns else None

    def _file(self, row: int) -> _Kept:
        self._count_grown()
        kept = self._kept.get(row)
        if kept is not None:
            self._kept.move_to_end(row)
            return kept
        word, body = self._value("outcome", row), self._bodies[row].as_py()
        try:
            file = outcome(word) if body is None else read(body, truncated=bool(self._value("truncated", row)))
        except BadOutcome as error:
            raise BadOutcome(f"{self.table.column('origin')[row]} in the bundle: {error}") from None
        self.parsed += 1
        self._parsed_now += 1
        if self._parsed_now == 2 * len(self) + 1:
            self._warn()
        version = self._value("version", row)
        kept = self._kept[row] = self._grown = _Kept(file, None if version is None else str(version))
        return kept

    def _warn(self) -> None:
        needed = self._size // max(len(self._kept), 1) * len(self)
        warnings.warn(
            f"{self._parsed_now:,} files were parsed of a bundle that has {len(self):,}: keep_bytes={self.keep_bytes} "
            f"is too small for the order of the rows. Set keep_bytes={needed} to keep all, decide more rows at once by "
            "decide_batches, or order them by host.",
            RuntimeWarning,
            stacklevel=2,
        )

    def _count_grown(self) -> None:
        """Count the file that was used last, once for all that was found in it."""
        if self._grown is not None:
            self._count(self._grown)
            self._grown = None

    def _count(self, kept: _Kept) -> None:
        """Count what a file takes now, and make room for it."""
        grown = kept.memory - kept.counted
        kept.counted += grown
        self._size += grown
        self.read_bytes += grown
        while self._size > self.keep_bytes and len(self._kept) > 1:
            self._size -= self._kept.popitem(last=False)[1].counted

    def _forget(self) -> None:
        self._kept.clear()
        self._grown = None
        self._size = self._parsed_now = 0

    def _forget_agents(self) -> None:
        for kept in self._kept.values():
            kept.groups.clear()
            self._count(kept)

    def _decide(self, batches: Sequence[pa.RecordBatch], options: _Options) -> "list[_Answers]":
        with self._lock, _collector_paused():
            if self._decider is None or self._decider.options != options:
                self._forget()
                self._decider = _Decider(self, options)
            answers = [self._decider.decide(batch) for batch in batches]
            self._count_grown()
            return answers


def _check(schema: pa.Schema) -> None:
    """Raise ValueError if a table of this schema is no bundle that can be read."""
    missing = {"origin", "outcome", "body"} - set(schema.names)
    if missing:
        raise ValueError(f"A bundle has the columns origin, outcome and body; this table lacks {sorted(missing)}.")
    body = str(schema.field("body").type)
    if body not in _BODIES:
        raise ValueError(f"The column body of a bundle is binary, not {body}: encode its texts.")
    form = (schema.metadata or {}).get(FORM, b"1")
    if form != b"1":
        raise ValueError(f"The bundle has the form {form.decode(errors='replace')[:20]}; this version reads 1.")


def _rows_of(file: pq.ParquetFile, origins: Sequence[str]) -> pa.Table:
    """The rows of these origins, which are sorted, from the row groups that may have them."""
    wanted, column = pa.array(origins, pa.string()), file.schema_arrow.names.index("origin")
    found = [file.schema_arrow.empty_table()]
    for number in range(file.num_row_groups):
        statistics = file.metadata.row_group(number).column(column).statistics
        if statistics is not None and statistics.has_min_max and isinstance(statistics.min, str):
            first = bisect_left(origins, statistics.min)
            if first == len(origins) or origins[first] > statistics.max:
                continue
        group = file.read_row_group(number)
        found.append(group.filter(pc.is_in(group.column("origin").cast(pa.string()), value_set=wanted)))
    return pa.concat_tables(found)


def _bundle(table: pa.Table, keep_bytes: int) -> Bundle:
    return Bundle(table, keep_bytes=keep_bytes)


def decide(
    batch: pa.RecordBatch | pa.Table,
    bundle: Bundle,
    *,
    dialect: str | None = None,
    purpose: str | Sequence[str] = (),
    at: datetime | None = None,
    profile: str | None = None,
    forbidden: bool = False,
    agents: AgentRows | None = None,
    missing: str = "defer",
) -> pa.RecordBatch:
    """The answers to the rows of a batch, in order.

    `dialect`, `purpose` and `forbidden` are as for File.decide. `at` is the instant that intervals are for, by default
    that of the bundle. `profile`: the fetch profile whose files decide, by default that of each agent. `agents`:
    crawlers of one's own, which are known beside those of agents.toml, or in their place. `missing`: an origin that the
    bundle lacks is a defer with the reason `unknown_origin`; with "error", MissingOrigins is raised instead. Raises
    UnknownDialect and UnknownPurpose.
    """
    options = _Options(
        dialect=dialect, purpose=purpose, at=at, profile=profile, forbidden=forbidden, agents=agents, missing=missing
    )
    answers = _answers(batch if isinstance(batch, pa.Table) else pa.Table.from_batches([batch]), bundle, options)
    found = _rows_from(answers, 0, batch.num_rows).combine_chunks().to_batches()
    return found[0] if found else pa.RecordBatch.from_pylist([], SCHEMA)


def _answers(table: pa.Table, bundle: Bundle, options: _Options) -> "list[_Answers]":
    """The answers to the rows of a table, in parts."""
    parts = [part for some in _parts(table.select(["url", "agent"]), ROWS) for part in some.to_batches()]
    answers = bundle._decide(parts, options)
    if options.missing == "error":
        names: set[str] = set()
        for part, its in zip(parts, answers, strict=True):
            is_missing = pc.equal(its.columns[_REASON], UNKNOWN_ORIGIN).take(its.numbers)
            names.update(it.key for it in _origins_of(part.column("url").filter(is_missing)))
        if names:
            some = ", ".join(sorted(names)[:3])
            raise MissingOrigins(f"The bundle lacks {len(names)} origins of the batch, such as {some}.")
    return answers


def _rows_from(answers: "Sequence[_Answers]", begin: int, count: int) -> pa.Table:
    """The answers to `count` rows from row `begin` on."""
    found = []
    for part in answers:
        size = len(part.numbers)
        if begin < size and count > 0:
            found.append(part.rows(begin, min(count, size - begin)))
            count -= len(found[-1])
        begin = max(0, begin - size)
    return pa.Table.from_batches(found, SCHEMA)


def decide_batches(
    batches: Iterable[pa.RecordBatch], bundle: Bundle, *, rows: int = ROWS, **options: Any
) -> Iterator[pa.RecordBatch]:
    """The batches, in order, each with the columns of SCHEMA added; one of more than `rows` rows comes in parts.

    Batches are decided together, up to `rows` rows and URL_BYTES, so that their order does not matter: a file is
    parsed once for them. The first comes when so many were read. `options` are those of `decide`. A reader of pyarrow
    or DuckDB is such an iterable, and so is what Spark's mapInArrow gives.
    """
    decided = partial(_decided, bundle=bundle, options=_Options(**options))
    waiting: list[pa.Table] = []
    for batch in batches:
        for part in _parts(pa.Table.from_batches([batch]), rows):
            together = [*waiting, part]
            if waiting and (sum(map(len, together)) > rows or sum(map(_url_bytes, together)) > URL_BYTES):
                yield from decided(waiting)
                waiting.clear()
            waiting.append(part)
    yield from decided(waiting)


def _decided(tables: Sequence[pa.Table], bundle: Bundle, options: _Options) -> Iterator[pa.RecordBatch]:
    """The tables as batches, with their answers."""
    if not tables:
        return
    answers = _answers(pa.concat_tables([it.select(["url", "agent"]) for it in tables]), bundle, options)
    begin = 0
    for table in tables:
        # Each batch has memory of its own, so that whoever keeps one does not keep the answers to all.
        found = _rows_from(answers, begin, len(table))
        begin += len(table)
        for name in SCHEMA.names:
            table = table.append_column(SCHEMA.field(name), found.column(name))
        yield from table.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], table.schema)]


def _parts(table: pa.Table, rows: int) -> Iterator[pa.Table]:
    """Parts of a table, of one chunk each, that can be decided together."""
    begin = 0
    while begin < len(table) or begin == 0:
        count = max(1, min(rows, len(table) - begin))
        while count > 1 and _url_bytes(table.slice(begin, count)) > URL_BYTES:
            count //= 2
        yield table.slice(begin, count).combine_chunks()
        begin += count


def _url_bytes(table: pa.Table) -> int:
    """Bytes of the URLs of a table; 0 if they share memory with those of other rows."""
    kind = table.schema.field("url").type
    has_offsets = kind in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    return int(table.column("url").nbytes) if has_offsets else 0


def missing_origins(batch: pa.RecordBatch | pa.Table, bundle: Bundle, *, profile: str | None = None) -> pa.Array:
    """The origins of a batch's URLs that the bundle lacks, sorted: what to make another bundle of."""
    found = _origins_of(batch.column("url"))
    return pa.array(sorted(it.key for it in found if bundle.row(it.with_profile(profile)) == _NONE), pa.string())


def _origins_of(urls: pa.Array | pa.ChunkedArray) -> set[Origin]:
    found = set()
    for url in _texts(pc.unique(urls)):
        try:
            found.add(read_target(url or "").origin)
        except BadUrl:
            continue
    return found


@contextmanager
def _collector_paused() -> Iterator[None]:
    # It would walk all files that are kept, again and again, while more are read.
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _Answers(NamedTuple):
    """The columns of distinct answers, and the number of each row's: far less memory than a row of text for each."""

    columns: Sequence[pa.Array]
    numbers: pa.Array

    def rows(self, begin: int, count: int) -> pa.RecordBatch:
        """The answers to some rows."""
        some = self.numbers.slice(begin, count)
        return pa.record_batch([column.take(some) for column in self.columns], schema=SCHEMA)


class _Decider:
    """Decides batches with the same options. URLs are split and matched in C.

    Python sees each pair of an origin and an agent, and each distinct answer, once in a batch. Pairs are taken in the
    order of the bundle's files, and in slices, each of which is answered before the files of the next are read.
    """

    def __init__(self, bundle: Bundle, options: _Options) -> None:
        self.options = options
        self._at = options.at or bundle.made_at
        self._bundle = bundle
        own = {token.lower(): agent_of(token, row) for token, row in (options.agents or {}).items()}
        self._known = {**known_agents(), **own}
        self._numbers: dict[str | None, int] = {}
        self._readers: dict[_Reader | None, int] = {}
        self._backwards = True
        self._forget_beginnings()

    def _forget_beginnings(self) -> None:
        self._seen: dict[bytes, int] = {}
        self._rows: dict[str | None, array[int]] = {}

    def decide(self, batch: pa.RecordBatch) -> _Answers:
        """The answers to a batch with at least one row."""
        count, urls, names = batch.num_rows, _strings(batch, "url"), _encoded(batch, "agent")
        if len(self._seen) > _BEGINNINGS:
            self._forget_beginnings()
        if len(self._numbers) + len(names.dictionary) > _AGENTS:
            self._numbers.clear()
            self._readers.clear()
            self._bundle._forget_agents()
        agents = pa.array([self._agent(name) for name in _texts(names.dictionary)], pa.int64())
        _, offsets, data = urls.buffers()
        data = data or b""
        codes, starts, ends = (pa.allocate_buffer(4 * count) for _ in range(3))
        split(data, offsets, urls.offset, count, self._seen, codes, starts, ends)
        beginnings = _ints(codes, count).cast(pa.int64())
        if urls.null_count:
            beginnings = pc.if_else(urls.is_valid(), beginnings, -1)
        pairs = pc.add(pc.multiply(beginnings, len(self._readers)), agents.take(names.indices)).dictionary_encode()
        readers = list(self._readers)
        files = self._files_of(pairs.dictionary, readers)
        order = self._in_order(files)
        places = pc.array_sort_indices(order).cast(pa.int32()).take(pairs.indices)  # in that order, of each row's pair
        paths = _PathsOfRows(data, _ints(starts, count), _ints(ends, count))
        slices = self._slices(pairs.dictionary.take(order), files.take(order), readers)
        head = next(slices)
        rows: pa.Array | None = None  # in the order in which they are decided: as they are, in a single slice
        last = pa.array([count])  # behind the rows of each pair
        if len(head[1]) < len(order):
            rows = pc.array_sort_indices(places)
            places, paths = places.take(rows), paths.take(rows)
            last = pc.cumulative_sum(pc.value_counts(places).field("counts"))
        columns: list[list[pa.Array]] = [[] for _ in SCHEMA]
        picked: list[pa.Array] = []
        first = begin = known = 0
        for groups, numbers in chain([head], slices):
            end = count if rows is None else last[first + len(numbers) - 1].as_py()
            which = pa.array(numbers, pa.int32()).take(pc.subtract(places.slice(begin, end - begin), first))
            found = paths.first_of_each(groups, which, begin)
            asked = None if rows is None else rows.slice(begin, end - begin)
            results, answers = self._answers(groups, which, found, urls, names, asked)
            for column, values, its in zip(columns, zip(*answers, strict=True), SCHEMA, strict=True):
                column.append(pa.array(values, its.type))
            picked.append(pc.add(results, known))
            known += len(answers)
            first += len(numbers)
            begin = end
        taken = pa.concat_arrays(picked)
        if rows is not None:
            taken = taken.take(pc.array_sort_indices(rows))
        return _Answers([pa.concat_arrays(column) for column in columns], taken)

    def _files_of(self, pairs: pa.Array, readers: Sequence[_Reader | None]) -> pa.Array:
        """The bundle's row for each pair, the number behind the last one for URLs that are read row by row."""
        agents = len(readers)
        profiles = {it.profile for it in readers if it is not None} or {None}
        columns = {profile: number for number, profile in enumerate(profiles)}
        rows = [_longs(self._rows_of(profile)) for profile in profiles]
        column = pa.array([0 if it is None else columns[it.profile] for it in readers], pa.int64())
        # A pair of no beginning, -1, divides to -1 only if it is rounded down.
        beginnings = pc.subtract(pc.divide(pc.add(pairs, agents), agents), 1)
        numbers = pc.subtract(pairs, pc.multiply(beginnings, agents))
        cells = pc.add(pc.multiply(column.take(numbers), len(rows[0])), pc.add(beginnings, 1))
        return pa.concat_arrays(rows).take(cells)

    def _rows_of(self, profile: str | None) -> "array[int]":
        """The bundle's row for each beginning of a URL from -1 on, under a profile; _NONE or _UNREAD without one."""
        rows = self._rows.setdefault(profile, array("q", [len(self._bundle)]))
        for beginning in islice(self._seen, len(rows) - 1, None):
            origin = _origin(beginning.decode("utf-8", "replace"))
            rows.append(_UNREAD if origin is None else self._bundle.row(origin.with_profile(profile)))
        return rows

    def _in_order(self, files: pa.Array) -> pa.Array:
        """The places of pairs in the order of the bundle's files, every other time backwards, from those that are kept.

        URLs that are read row by row are last: most of their files are kept then.
        """
        self._backwards = not self._backwards
        behind = len(self._bundle)
        ranks = pc.if_else(pc.equal(files, behind), behind, pc.negate(files)) if self._backwards else files
        return pc.array_sort_indices(ranks)

    def _slices(
        self, pairs: pa.Array, files: pa.Array, readers: Sequence[_Reader | None]
    ) -> Iterator[tuple[list[_OfAgent], list[int]]]:
        """Slices of the pairs: what decides in one, and for each pair the number of what decides for it."""
        groups: list[_OfAgent] = []
        numbers: list[int] = []
        known: dict[int, int] = {}
        bundle, behind = self._bundle, len(self._bundle)
        read, last, kept = bundle.read_bytes, _NONE, None
        for pair, row in zip(_numbers(pairs), _numbers(files), strict=True):
            agent = pair % len(readers)
            reader = readers[agent]
            if row == behind:
                group = _BY_ROW
            elif row == _UNREAD:
                group = _OF_NO_URL
            elif reader is None:
                group = _OF_NO_AGENT
            elif row == _NONE:
                group = _OF_UNKNOWN
            else:
                if row != last or kept is None:
                    kept, last = bundle._file(row), row
                group = kept.groups.get(agent) or self._shared(kept, agent, reader)
            number = known.setdefault(id(group), len(groups))
            if number == len(groups):
                groups.append(group)
            numbers.append(number)
            if len(numbers) == _SLICE_PAIRS or bundle.read_bytes - read > _SLICE_BYTES:
                yield groups, numbers
                groups, numbers, known, read = [], [], {}, bundle.read_bytes
                last = _NONE  # the file may be gone
        if numbers:
            yield groups, numbers

    def _answers(
        self,
        groups: Sequence[_OfAgent],
        which: pa.Array,
        found: pa.Array,
        urls: pa.Array,
        names: pa.DictionaryArray,
        asked: pa.Array | None,
    ) -> tuple[pa.Array, list[_Row]]:
        """The number of each row's answer, and the answers; by the group of each row, and the rule that was found.

        `asked` are the rows in the batch of these URLs and names, None for all.
        """
        results = pc.add(pc.multiply(which.cast(pa.int64()), _FAR), found.cast(pa.int64())).dictionary_encode()
        picked, answers, unread = results.indices.cast(pa.int64()), [], []
        for place, result in enumerate(results.dictionary.to_pylist()):
            group, number = divmod(result + _LOWEST, _FAR)
            answer = self._answer(groups[group], number - _LOWEST)
            if answer is None:
                unread.append(place)
            answers.append(answer or _NO_URL)
        if unread:
            mask = pc.is_in(picked, value_set=pa.array(unread, picked.type))
            some = pc.indices_nonzero(mask) if asked is None else asked.filter(mask)
            each = self._each(urls.take(some), names.dictionary, names.indices.take(some), answers)
            picked = pc.replace_with_mask(picked, mask, each)
        return picked, answers

    def _agent(self, name: str | None) -> int:
        """The number of an agent."""
        number = self._numbers.get(name)
        if number is None:
            reader: _Reader | None = None
            try:
                agent = read_agent(name or "", self._known)
            except BadAgent:
                pass
            else:
                profile = agent.profile if self.options.profile is None else self.options.profile
                reader = _Reader(agent, dialect_of(self.options.dialect, agent), profile)
            number = self._numbers[name] = self._readers.setdefault(reader, len(self._readers))
        return number

    def _shared(self, kept: _Kept, number: int, reader: _Reader) -> _OfAgent:
        """What decides for the agent of a number by a file, from now on."""
        agent, dialect, _ = reader
        robots = kept.file.robots
        token = None if robots is None else robots.reading(dialect).token(agent)
        key = dialect.name, token, agent.star_delay
        group = kept.shared.get(key)
        if group is None:
            group = kept.shared[key] = self._new_group(kept, reader)
        kept.groups[number] = group
        self._bundle._grown = kept
        return group

    def _new_group(self, kept: _Kept, reader: _Reader) -> _OfAgent:
        agent, dialect, _ = reader
        if kept.file.robots is not None:
            reading = kept.file.robots.reading(dialect)
            rules = reading.rules_of(agent)
            if rules is not None:
                terms = reading.terms(rules.selection, agent)
                if self.options.purpose and terms.usage is not None:
                    return _BY_ROW  # statements about usage have paths of their own
                return _OfAgent(None, kept, agent, rules, terms.rates.at(self._at).value)
        return _OfAgent(self._decided(kept.file, kept.version, agent, "/"), kept, agent)

    def _answer(self, group: _OfAgent, number: int) -> _Row | None:
        """The answer of a group by the number of a rule; None if it decides row by row."""
        if group.file is None or group.agent is None or (group.constant is not None and number != _ROBOTS_TXT):
            return group.constant
        if number == _ROBOTS_TXT or group.rules is None:
            return self._decided(group.file, group.version, group.agent, ROBOTS_PATH)
        ruleset = group.rules.ruleset
        if not 0 <= number < len(ruleset):
            return _written(decision(group.rules.verdict(number), group.rate), group.version)
        line, key, value = ruleset.rule(number)  # without the pattern of a verdict's rule, which no answer shows
        verdict = Permission.ALLOW if key is Key.ALLOW else Permission.DISALLOW
        return _written(Decision(verdict, Reason.RULE, f"{key}: {readable(value)}", line, group.rate), group.version)

    def _each(self, urls: pa.Array, texts: pa.Array, names: pa.Array, answers: list[_Row]) -> pa.Array:
        """Decide rows one by one; their answers are added to `answers`, and the number of each is returned."""
        places: dict[_Row, int] = {}
        readers = list(self._readers)
        found, agents = [], [readers[self._agent(text)] for text in _texts(texts)]
        for url, name in zip(_texts(urls), names.to_pylist(), strict=True):
            answer = self._one(url or "", agents[name])
            place = places.setdefault(answer, len(answers))
            if place == len(answers):
                answers.append(answer)
            found.append(place)
        return pa.array(found, pa.int64())

    def _one(self, url: str, reader: _Reader | None) -> _Row:
        try:
            target = read_target(url)
        except BadUrl:
            return _NO_URL
        if reader is None:
            return _NO_AGENT
        row = self._bundle.row(target.origin.with_profile(reader.profile))
        if row == _NONE:
            return _UNKNOWN
        kept = self._bundle._file(row)
        decided = self._decided(kept.file, kept.version, reader.agent, target.path)
        self._bundle._grown = kept
        return decided

    def _decided(self, file: File, version: str | None, agent: Agent, path: str) -> _Row:
        it = self.options
        found = file.decide(path, agent, dialect=it.dialect, purpose=it.purpose, at=self._at, forbidden=it.forbidden)
        return _written(found, version)


_BY_ROW: Final = _OfAgent()
_OF_NO_URL: Final = _OfAgent(_NO_URL)
_OF_NO_AGENT: Final = _OfAgent(_NO_AGENT)
_OF_UNKNOWN: Final = _OfAgent(_UNKNOWN)


def _origin(url: str) -> Origin | None:
    try:
        return read_target(url).origin
    except BadUrl:
        return None


def _written(it: Decision, version: str | None) -> _Row:
    interval = None if it.rate is None else it.rate.interval
    return (str(it.verdict), str(it.reason), it.rule, it.line, interval, version)


def _strings(batch: pa.RecordBatch, name: str) -> pa.Array:
    column = batch.column(name)
    # Safe casts refuse bytes that are not UTF-8, of which logs and crawls have many.
    return column if column.type == pa.string() else column.cast(pa.string(), safe=False)


def _texts(values: pa.Array) -> list[str | None]:
    """Texts, in which U+FFFD stands for what is not UTF-8."""
    found = values.cast(pa.string(), safe=False).cast(pa.binary()).to_pylist()
    return [None if text is None else text.decode("utf-8", "replace") for text in found]


def _encoded(batch: pa.RecordBatch, name: str) -> pa.DictionaryArray:
    """A column of strings with each text once, null among them."""
    return _strings(batch, name).dictionary_encode(null_encoding="encode")


class _PathsOfRows:
    """Where the path of each row lies in a text."""

    def __init__(self, text: pa.Buffer | bytes, starts: pa.Array, ends: pa.Array) -> None:
        self._text, self._starts, self._ends = text, starts, ends

    def take(self, rows: pa.Array) -> "_PathsOfRows":
        """Those of some rows."""
        return _PathsOfRows(self._text, self._starts.take(rows), self._ends.take(rows))

    def first_of_each(self, groups: Sequence[_OfAgent], which: pa.Array, begin: int) -> pa.Array:
        """The number of the first rule for each row from `begin` on, by the group of its number in `which`."""
        count = len(which)
        starts, ends = (it.buffers()[1].slice(4 * begin, 4 * count) for it in (self._starts, self._ends))
        found = pa.allocate_buffer(4 * count)
        matchers = [it.plain for it in groups], [it.with_query for it in groups]
        first_of_each(*matchers, which.buffers()[1], self._text, starts, ends, count, found)
        return _ints(found, count)


def _numbers(values: pa.Array) -> Iterator[int]:
    """The numbers of an array, without a list of all."""
    for begin in range(0, len(values), 4096):
        yield from values.slice(begin, 4096).to_pylist()


def _longs(numbers: "array[int]") -> pa.Array:
    return pa.Array.from_buffers(pa.int64(), len(numbers), [None, pa.py_buffer(numbers.tobytes())])


def _ints(buffer: pa.Buffer, count: int) -> pa.Array:
    return pa.Array.from_buffers(pa.int32(), count, [None, buffer])
