"""Arrow batches are decided as the library decides each row, in any batches, in any order, and with little memory."""

import gc
import pickle
import warnings
from mmap import MAP_ANONYMOUS, MAP_PRIVATE, mmap
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import robots_core
from robots_core import arrow
from robots_core.arrow import BUNDLE_SCHEMA, SCHEMA, Bundle, MissingOrigins, decide, missing_origins
from robots_core.outcomes import BadOutcome
from robots_core.purposes.policy import PURPOSES
from robots_core.robots.agents import agent_of, known_agents, read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.robots_txt import RobotsTxt
from tests.bulk.bundles import bundle_of
from tests.core.library import AT, answers
from tests.core.questions import Asked, files, host, questions

FILES = 1000
ASKED = 100_000
SEED = 20_261_124
WORDS = (
    *map(str, range(400, 600)),
    *("timeout", "dns", "tls", "connection", "proxy", "bad_response", "challenge", "server_error"),
    "too_many_requests",
    *("redirect_loop", "cookie_loop", "refused_redirect", "unreachable_redirect", "blocked_address"),
)


def batch_of(asked: list[Asked]) -> pa.RecordBatch:
    return pa.record_batch([[it.url for it in asked], [it.agent for it in asked]], names=["url", "agent"])


def rows_of(answered: pa.RecordBatch | pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(answered.column(name).to_pylist() for name in SCHEMA.names[:-1]), strict=True))


BODIES = files(SEED, FILES)
QUESTIONS = list(questions(SEED, BODIES, ASKED))
TABLE = bundle_of(BODIES)


@pytest.mark.timeout(600)
def test_batches_are_answered_as_each_row_is() -> None:
    expected = answers(BODIES, QUESTIONS)
    bundle = Bundle(TABLE)
    whole = decide(pa.Table.from_batches([batch_of(QUESTIONS)]), bundle)
    assert whole.schema == SCHEMA
    for question, row, want in zip(QUESTIONS, rows_of(whole), expected, strict=True):
        assert row == want, question
    assert len({row[1] for row in expected}) > 10
    assert bundle.parsed <= len(bundle)
    versions = {
        question.file: version
        for question, version in zip(QUESTIONS, whole["version"].to_pylist(), strict=True)
        if version
    }
    assert versions == {file: f"v{file}" for file in versions}

    # Again with what is kept, then in small batches, in another order, with little room.
    assert decide(pa.Table.from_batches([batch_of(QUESTIONS)]), bundle) == whole
    small = Bundle(TABLE.take(pa.array(Random(1).sample(range(FILES), FILES))), keep_bytes=200_000)
    order = Random(2).sample(range(ASKED), 5000)
    parts = [order[start : start + 333] for start in range(0, len(order), 333)]
    with pytest.warns(RuntimeWarning, match=r"Set keep_bytes=\d+ to keep all") as warned:
        found = [decide(batch_of([QUESTIONS[it] for it in part]), small) for part in parts]
    for part, answered in zip(parts, found, strict=True):
        assert rows_of(answered) == [expected[it] for it in part]
    assert len(warned) == 1
    assert small.parsed > 2 * FILES
    assert small._size < 200_000 + 1_000_000


@pytest.mark.parametrize("rows", [1, 7, 1500, arrow.ROWS])
@pytest.mark.parametrize("options", [{}, {"purpose": PURPOSES}, {"dialect": "draft1996"}], ids=str)
@pytest.mark.parametrize("small", [False, True])
def test_many_batches_are_decided_together(
    rows: int, options: dict[str, Any], small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if small:
        monkeypatch.setattr(arrow, "_SLICE_PAIRS", 3)
        monkeypatch.setattr(arrow, "_SLICE_BYTES", 1)
        monkeypatch.setattr(arrow, "_BEGINNINGS", 50)
    asked = QUESTIONS[: 400 if rows < 10 else 4000]
    table = pa.Table.from_batches([batch_of(asked)]).append_column("id", pa.array(range(len(asked))))
    given = table.to_batches(max_chunksize=100)
    bundle = Bundle(TABLE, keep_bytes=1 if small else arrow.KEEP_BYTES)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = pa.Table.from_batches(arrow.decide_batches(iter(given), bundle, rows=rows, **options))
    assert found.schema.names == ["url", "agent", "id", *SCHEMA.names]
    assert found.select(table.schema.names).equals(table)
    assert rows_of(found) == answers(BODIES, asked, options.get("dialect"), options.get("purpose", ()))


def test_a_file_is_parsed_once_for_the_rows_that_are_decided_together() -> None:
    batches = pa.Table.from_batches([batch_of(QUESTIONS[:20_000])]).to_batches(max_chunksize=1000)
    bundle = Bundle(TABLE, keep_bytes=1)
    list(arrow.decide_batches(batches, bundle))
    assert bundle.parsed < 1.5 * len(bundle)  # but for URLs that are read row by row
    each = Bundle(TABLE, keep_bytes=1)
    with pytest.warns(RuntimeWarning, match="decide_batches"):
        list(arrow.decide_batches(batches, each, rows=1000))
    assert each.parsed > 3 * len(each)


def test_batches_come_back_as_they_are() -> None:
    empty = pa.record_batch([pa.array([], pa.string())] * 2, names=["url", "agent"])
    one = batch_of(QUESTIONS[:1])
    found = list(arrow.decide_batches([empty, one, empty], Bundle(TABLE)))
    assert [len(it) for it in found] == [0, 1, 0]
    assert {tuple(it.schema.names) for it in found} == {("url", "agent", *SCHEMA.names)}
    assert list(arrow.decide_batches([], Bundle(TABLE))) == []
    parts = list(arrow.decide_batches([batch_of(QUESTIONS[:10])], Bundle(TABLE), rows=4))
    assert [len(it) for it in parts] == [4, 4, 2]
    reader = pa.Table.from_batches([batch_of(QUESTIONS[:10])]).to_reader()
    assert sum(map(len, arrow.decide_batches(reader, Bundle(TABLE)))) == 10


def test_a_batch_that_is_kept_does_not_keep_the_answers_to_others() -> None:
    given = pa.Table.from_batches([batch_of(QUESTIONS[:20_000])]).to_batches(max_chunksize=100)
    first = next(iter(arrow.decide_batches(given, Bundle(TABLE))))
    sizes = [buffer.size for name in SCHEMA.names for buffer in first.column(name).buffers() if buffer is not None]
    assert sum(sizes) < 100 * 200  # bytes of a row


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())], ids=str)
def test_batches_are_cut_by_the_bytes_of_their_urls(kind: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = QUESTIONS[:300]
    expected = decide(batch_of(asked), Bundle(TABLE))
    monkeypatch.setattr(arrow, "URL_BYTES", 500)
    cut: list[int] = []
    inner = arrow.Bundle._decide

    def noted(bundle: Bundle, batches: list[pa.RecordBatch], *others: Any) -> Any:
        cut.extend(len(batch) for batch in batches)
        return inner(bundle, batches, *others)

    monkeypatch.setattr(arrow.Bundle, "_decide", noted)
    batch = batch_of(asked)
    given = pa.record_batch(
        [
            batch.column("url").cast(pa.string()).dictionary_encode()
            if pa.types.is_dictionary(kind)
            else batch.column("url").cast(kind),
            batch.column("agent"),
        ],
        names=["url", "agent"],
    )
    assert decide(given, Bundle(TABLE)) == expected
    assert (
        pa.Table.from_batches(arrow.decide_batches([given], Bundle(TABLE)))
        .select(SCHEMA.names)
        .equals(pa.Table.from_batches([expected]))
    )
    assert len(cut) == 2 if pa.types.is_dictionary(kind) else len(cut) > 20


def test_agents_that_share_rules_have_answers_of_their_own() -> None:
    """Those of one token share what decides, unless they differ in dialect or in the delay that they inherit."""
    body = (
        b"User-agent: A\nUser-agent: B\nDisallow: /a*b\nCrawl-delay: 5\n\nUser-agent: *\nCrawl-delay: 9\nDisallow: /x"
    )
    own: dict[str, dict[str, Any]] = {
        "A": {},
        "B": {"dialect": "draft1996"},
        "C": {"chain": ["A"]},
        "D": {"star_delay": True},
        "E": {"star": False},
    }
    names = [*own, "F", "G/1.0"]
    urls = [f"https://{host(0)}{path}" for path in ("/axb", "/x", "/", "/robots.txt")]
    batch = pa.record_batch([urls * len(names), [name for name in names for _ in urls]], names=["url", "agent"])
    found = decide(batch, Bundle(bundle_of([body])), agents=own)
    file, known = robots_core.read(body), {name.lower(): agent_of(name, row) for name, row in own.items()}
    for url, name, row in zip(batch["url"].to_pylist(), batch["agent"].to_pylist(), rows_of(found), strict=True):
        it = file.decide(url, read_agent(name, {**known_agents(), **known}), at=AT)
        assert row == (it.verdict, it.reason, it.rule, it.line, None if it.rate is None else it.rate.interval)


@pytest.mark.parametrize("purpose", [(), PURPOSES], ids=["", "purposes"])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_every_dialect_and_purpose(dialect: str, purpose: tuple[str, ...]) -> None:
    asked = QUESTIONS[:5000]
    found = decide(batch_of(asked), Bundle(TABLE), dialect=dialect, purpose=purpose)
    assert rows_of(found) == answers(BODIES, asked, dialect, purpose)


def test_columns_of_every_kind_of_text() -> None:
    asked = QUESTIONS[:500]
    batch, bundle = batch_of(asked), Bundle(TABLE)
    expected = decide(batch, bundle)
    for kind in pa.large_string(), pa.string_view(), pa.dictionary(pa.int32(), pa.string()):
        texts = batch.column("url"), batch.column("agent")
        cast = [it.dictionary_encode() if pa.types.is_dictionary(kind) else it.cast(kind) for it in texts]
        assert decide(pa.record_batch(cast, names=["url", "agent"]), bundle) == expected, kind
    assert decide(batch.slice(100, 50), bundle) == expected.slice(100, 50)
    assert decide(batch.slice(0, 0), bundle).num_rows == 0


def test_nulls_are_answers() -> None:
    for kind in pa.string(), pa.null():
        urls = pa.array([None, None], kind)
        found = decide(pa.record_batch([urls, pa.array(["A", None])], names=["url", "agent"]), Bundle(TABLE))
        assert found["reason"].to_pylist() == ["bad_url", "bad_url"]
    urls = pa.array([f"https://{host(0)}/"])
    found = decide(pa.record_batch([urls, pa.array([None], pa.string())], names=["url", "agent"]), Bundle(TABLE))
    assert found["reason"].to_pylist() == ["bad_agent"]
    text = f"https://{host(0)}/".encode()
    buffers = [
        pa.py_buffer(b"\2"),
        pa.array([0, len(text), 2 * len(text)], pa.int32()).buffers()[1],
        pa.py_buffer(2 * text),
    ]
    urls = pa.Array.from_buffers(pa.string(), 2, buffers)  # the null has text behind it
    found = decide(pa.record_batch([urls, pa.array(["A", "A"])], names=["url", "agent"]), Bundle(TABLE))
    assert [reason == "bad_url" for reason in found["reason"].to_pylist()] == [True, False]


def test_damaged_arrays_are_refused() -> None:
    for ends in [[0, 5, 3], [0, -1, 3], [0, 40, 3], [0, 3, 400]]:
        buffers = [None, pa.array(ends, pa.int32()).buffers()[1], pa.py_buffer(b"https://a.example/")]
        with pytest.raises(ValueError, match=r"ascend|shorter|offsets"):  # noqa: PT012 - pyarrow refuses some itself
            urls = pa.Array.from_buffers(pa.string(), 2, buffers)
            decide(pa.record_batch([urls, pa.array(["A", "A"])], names=["url", "agent"]), Bundle(TABLE))
    urls = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.array([0, 12], pa.int32()).buffers()[1], pa.py_buffer(b"https://\xff\xfe/x")]
    )
    found = decide(pa.record_batch([urls, pa.array(["A"])], names=["url", "agent"]), Bundle(TABLE))
    assert found["reason"].to_pylist() == ["bad_url"]


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()], ids=str)
def test_rows_that_are_not_utf_8_end_no_job(kind: pa.DataType) -> None:
    def column(*values: bytes) -> pa.Array:
        return pa.array(values, pa.binary()).cast(kind, safe=False)

    start = f"https://{host(0)}".encode()
    urls = column(start + b"/\xff", start + b"/private/\xe9", b"\xff", b"https://b.example/\xff", start + b"/private/")
    agents = column(b"A", b"A/1.0 caf\xe9", b"A", b"A", b"\xff")
    bundle, batch = (
        Bundle(bundle_of([b"User-agent: *\nContent-Signal: search=yes\nDisallow: /private/"])),
        pa.record_batch([urls, agents], names=["url", "agent"]),
    )
    found = decide(batch, bundle)
    assert found["reason"].to_pylist() == ["no_match", "rule", "bad_url", "unknown_origin", "bad_agent"]
    one_by_one = decide(batch, Bundle(bundle.table), purpose="search")
    assert one_by_one["reason"].to_pylist() == found["reason"].to_pylist()
    assert missing_origins(batch, bundle).to_pylist() == ["https://b.example"]
    with pytest.raises(MissingOrigins, match=r"https://b\.example"):
        decide(batch, bundle, missing="error")


def test_many_agents_and_origins_are_forgotten_in_time() -> None:
    bundle = Bundle(TABLE)
    agents = [f"Bot{chr(97 + number % 26)}{number}" for number in range(9000)]
    for start in range(0, len(agents), 3000):
        urls = [f"https://{host(number % FILES)}/" for number in range(3000)]
        found = decide(pa.record_batch([urls, agents[start : start + 3000]], names=["url", "agent"]), bundle)
        asked = [Asked(0, url, agent) for url, agent in zip(urls, agents[start : start + 3000], strict=True)]
        assert rows_of(found) == answers(BODIES, asked)


def test_fetch_profiles_have_rows_of_their_own() -> None:
    table = pa.table(
        {
            "origin": ["https://a.example", "https://a.example"],
            "profile": [None, "signed"],
            "outcome": ["200", "200"],
            "body": [b"User-agent: *\nDisallow: /", b""],
        }
    )
    batch = pa.record_batch([["https://a.example/"], ["A"]], names=["url", "agent"])
    found = [decide(batch, Bundle(table), profile=name)["verdict"].to_pylist() for name in (None, "signed", "other")]
    assert found == [["disallow"], ["allow"], ["defer"]]


def test_own_crawlers_have_their_profiles_dialects_and_fallbacks() -> None:
    table = pa.table(
        {
            "origin": ["https://a.example", "https://a.example"],
            "profile": [None, "signed"],
            "outcome": ["200", "200"],
            "body": [b"User-agent: *\nDisallow: /", b"User-agent: OtherBot\nDisallow: /x*y\nCrawl-delay: 3"],
        }
    )
    names = ["OwnBot/1.0", "ownbot", "OldBot", "NewBot"]
    batch = pa.record_batch([["https://a.example/x1y"] * 4, names], names=["url", "agent"])
    own = {
        "OwnBot": {"profile": "signed", "chain": ["OtherBot"], "floor": "2s"},
        "OldBot": {"profile": "signed", "chain": ["otherbot"], "dialect": "draft1996"},
    }
    bundle = Bundle(table)
    found = decide(batch, bundle, agents=own)
    assert found["verdict"].to_pylist() == ["disallow", "disallow", "allow", "disallow"]
    assert found["interval"].to_pylist() == [3, 3, None, None]
    assert decide(batch, bundle)["interval"].to_pylist() == [None] * 4
    assert decide(batch, bundle, agents=own, profile="other")["reason"].to_pylist() == ["unknown_origin"] * 4
    with pytest.raises(ValueError, match="latin"):
        decide(batch, bundle, agents={"OwnBot": {"dialect": "latin"}})


def test_missing_origins_are_named() -> None:
    bundle = Bundle(bundle_of([b"", b""]))
    batch = pa.record_batch([[f"https://{host(number)}/" for number in range(4)], ["A"] * 4], names=["url", "agent"])
    assert missing_origins(batch, bundle).to_pylist() == [f"https://{host(2)}", f"https://{host(3)}"]
    with pytest.raises(MissingOrigins, match=f"lacks 2 origins of the batch, such as https://{host(2)}"):
        decide(batch, bundle, missing="error")
    with pytest.raises(MissingOrigins, match=f"lacks 4 origins of the batch, such as https://{host(0)}"):
        decide(pa.Table.from_batches([batch, batch]), bundle, profile="signed", missing="error")
    own = {"A": {"profile": "signed"}}
    with pytest.raises(MissingOrigins, match=f"lacks 1 origins of the batch, such as https://{host(1)}"):
        decide(batch.slice(1, 1), bundle, agents=own, missing="error")
    assert decide(batch.slice(0, 2), bundle, missing="error")["verdict"].to_pylist() == ["allow"] * 2
    assert decide(batch.slice(0, 0), bundle, missing="error").num_rows == 0


@pytest.mark.parametrize("word", ["ok", None, "200"])
def test_a_row_of_a_bundle_that_cannot_be_read_is_named(word: str | None) -> None:
    table = pa.table({"origin": [f"https://{host(0)}"], "outcome": pa.array([word], pa.string()), "body": pa.nulls(1)})
    batch = pa.record_batch([[f"https://{host(0)}/"], ["A"]], names=["url", "agent"])
    with pytest.raises(BadOutcome, match=f"^https://{host(0)} in the bundle: '{word}' is not the outcome"):
        decide(batch, Bundle(table))


def test_each_outcome_of_a_bundle_decides_as_its_word() -> None:
    bundle = Bundle(bundle_of([*WORDS]))
    for dialect in DIALECTS:
        asked = [
            Asked(file, f"https://{host(file)}{path}", "ExampleBot")
            for file in range(len(WORDS))
            for path in ("/x", "/robots.txt")
        ]
        found = decide(batch_of(asked), bundle, dialect=dialect)
        assert rows_of(found) == answers([*WORDS], asked, dialect)


@pytest.mark.parametrize("status", [200, 206, *range(300, 400)])
def test_a_status_that_says_nothing_of_a_file_ends_a_job(status: int) -> None:
    table = bundle_of([str(status)])
    batch = batch_of([Asked(0, f"https://{host(0)}/", "ExampleBot")])
    with pytest.raises(BadOutcome, match=f"^https://{host(0)} in the bundle: '{status}' is not the outcome"):
        decide(batch, Bundle(table))


def test_the_last_row_of_a_column_of_2_gib_is_decided() -> None:
    with mmap(-1, 2**31, flags=MAP_PRIVATE | MAP_ANONYMOUS) as memory:
        for gap in range(4):
            end = 2**31 - 1 - gap
            memory[end - 1 : end] = b"x"
            buffers = [None, pa.array([end - 1, end], pa.int32()).buffers()[1], pa.py_buffer(memory)]
            urls = pa.Array.from_buffers(pa.string(), 1, buffers)
            found = decide(pa.record_batch([urls, ["A"]], names=["url", "agent"]), Bundle(TABLE))
            assert found["reason"].to_pylist() == ["bad_url"]
            del urls, buffers, found


def test_a_file_that_is_no_longer_kept_is_freed_without_the_collector() -> None:
    def parsed_files() -> int:
        return sum(type(it) is RobotsTxt for it in gc.get_objects())

    gc.collect()
    before, bundle = parsed_files(), Bundle(TABLE, keep_bytes=1)
    gc.disable()
    try:
        decide(batch_of(QUESTIONS[:2000]), bundle)
        assert bundle.parsed > 500
        assert parsed_files() - before <= 1
    finally:
        gc.enable()


def test_a_version_may_be_a_number() -> None:
    bundle = Bundle(bundle_of([b"", b""], version=[7, None]))
    batch = pa.record_batch([[f"https://{host(at)}/" for at in range(2)], ["A"] * 2], names=["url", "agent"])
    assert decide(batch, bundle)["version"].to_pylist() == ["7", None]


def test_a_bundle_is_read_by_origins_and_pickled(tmp_path: Path) -> None:
    path = tmp_path / "bundle.parquet"
    unset = [field for field in BUNDLE_SCHEMA if field.name not in TABLE.column_names]
    columns = {field.name: pa.nulls(FILES, field.type) for field in unset}
    pq.write_table(bundle_of(BODIES, **columns), path, row_group_size=100, compression="zstd")
    some = Bundle.open(path, origins=[f"https://{host(3)}", f"https://{host(700)}", "https://other.example"])
    assert (len(some), some.made_at) == (2, AT)
    asked = [it for it in QUESTIONS if it.file in (3, 700)]
    again = pickle.loads(pickle.dumps(some))
    assert decide(batch_of(asked), again) == decide(batch_of(asked), some) == decide(batch_of(asked), Bundle(TABLE))


class Groups:
    """Counts the row groups that are read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.read: list[int] = []
        read = pq.ParquetFile.read_row_group

        def noted(file: pq.ParquetFile, number: int, **others: Any) -> pa.Table:
            self.read.append(number)
            return read(file, number, **others)

        monkeypatch.setattr(pq.ParquetFile, "read_row_group", noted)


@pytest.mark.parametrize("shuffled", [False, True])
def test_bundle_in_a_file_decides_as_in_memory(shuffled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "bundle.parquet"
    table = TABLE.take(pa.array(Random(4).sample(range(FILES), FILES))) if shuffled else TABLE
    pq.write_table(table, path, row_group_size=100, compression="zstd")
    monkeypatch.setattr(arrow, "GROUP_BYTES", 1)
    groups = Groups(monkeypatch)
    bundle = Bundle.open(path)
    assert (len(bundle), groups.read) == (FILES, [])
    batch = batch_of(QUESTIONS[:20_000])
    assert decide(batch, bundle) == decide(batch, Bundle(TABLE))
    assert groups.read == list(range(10))  # each once, in their order, however the rows of the batch are
    again = pickle.loads(pickle.dumps(bundle))
    assert decide(batch, again) == decide(batch, bundle)
    assert not again.is_read_in_groups


def test_memory_has_few_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, size, count = tmp_path / "bundle.parquet", 100_000, 400
    random = Random(5)
    bodies: list[bytes | str] = [b"User-agent: *\nDisallow: /x\n#" + random.randbytes(size) for _ in range(count)]
    pq.write_table(bundle_of(bodies), path, row_group_size=10)
    del bodies
    monkeypatch.setattr(arrow, "GROUP_BYTES", 2_500_000)
    gc.collect()
    before = pa.total_allocated_bytes()
    bundle = Bundle.open(path, keep_bytes=1)
    assert pa.total_allocated_bytes() - before < size
    for start in range(0, count, 50):
        asked = [Asked(file, f"https://{host(file)}/x", "ExampleBot") for file in range(start, start + 50)]
        assert set(decide(batch_of(asked), bundle)["verdict"].to_pylist()) == {"disallow"}
        assert pa.total_allocated_bytes() - before < 4_000_000


@pytest.mark.parametrize("statistics", [True, False])
def test_only_row_groups_of_the_origins_are_read(
    statistics: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bundle.parquet"
    pq.write_table(TABLE, path, row_group_size=100, write_statistics=statistics)
    groups = Groups(monkeypatch)
    wanted = [f"https://{host(file)}" for file in (3, 7, 250, 999)]
    bundle = Bundle.open(path, origins=[*wanted, "https://h00500a.example", "https://a.example", "https://z.example"])
    assert bundle.table["origin"].to_pylist() == wanted
    assert groups.read == ([0, 2, 5, 9] if statistics else list(range(10)))
    assert len(Bundle.open(path, origins=[])) == 0


def test_what_is_no_bundle_or_no_argument_is_refused() -> None:
    batch = batch_of(QUESTIONS[:1])
    with pytest.raises(ValueError, match=r"lacks \['body', 'outcome'\]"):
        Bundle(pa.table({"origin": ["https://a.example"]}))
    with pytest.raises(ValueError, match="no origin"):
        Bundle(pa.table({"origin": pa.array([None], pa.string()), "outcome": ["200"], "body": [b""]}))
    for wrong in {"dialect": "latin"}, {"purpose": "fun"}, {"missing": "skip"}:
        with pytest.raises(ValueError, match=r"latin|fun|skip"):
            decide(batch, Bundle(TABLE), **wrong)  # type: ignore[arg-type]
    texts = TABLE.set_column(TABLE.column_names.index("body"), "body", pa.nulls(FILES, pa.string()))
    with pytest.raises(ValueError, match="The column body of a bundle is binary, not string"):
        Bundle(texts)
    with pytest.raises(ValueError, match="The bundle has the form 2; this version reads 1"):
        Bundle(TABLE.replace_schema_metadata({arrow.FORM: "2"}))
    assert gc.isenabled()
