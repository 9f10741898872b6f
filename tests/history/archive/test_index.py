"""The index finds every span in bounded pieces, as a scan of all spans does."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cache.freshness import DAY, KEEP, Failing, Snapshot
from app.history.archive import index as archive_index
from app.history.archive.archive import Archive
from app.history.archive.files import Line
from app.history.archive.folder import Folder
from app.history.archive.places import files_at
from app.history.archive.span import span_of
from app.history.versions import Version, in_order, version_at, version_of
from robots_core.robots.access import Successful
from tests.history.archive.spans import (
    ACCESSES,
    BOT,
    DOWN,
    NOW,
    SITE,
    A,
    B,
    folder_name,
    found,
    index_of,
    origins,
    write,
)


def digest_of(version: Version | None) -> str | None:
    return None if version is None else version.digest.hex()


@pytest.mark.parametrize(("seed", "piece"), list(enumerate([0, 1, 3, 500])))
def test_every_instant_is_answered_by_pieces_as_by_the_whole(
    archive: Archive, monkeypatch: pytest.MonkeyPatch, piece: int, seed: int
) -> None:
    """Spans of seconds to weeks, close together and far apart, of fetches and of callers, written in any order."""
    monkeypatch.setattr(archive_index, "PIECE", piece)
    chance = random.Random(seed)
    snapshots: list[Snapshot] = []
    at = float(NOW)
    for number in range(40):
        at += chance.choice([1, 5, 50, 70, 4000, 90_000, 8 * DAY]) * chance.random()
        lasts = chance.choice([0, 0, 0, 1, 59, 600, 5000, 2 * DAY, 20 * DAY])
        ingested = "sender" if chance.random() < 0.4 else None
        own = None if ingested is None or chance.random() < 0.5 else int(at - lasts * chance.random())
        body = b"User-agent: *\nDisallow: /%d\n" % chance.choice([number, number, 1, 2])
        access = DOWN if chance.random() < 0.1 else Successful(200, body)
        failing = Failing(at, at, 1, DOWN) if access is DOWN else None
        snapshots.append(Snapshot(access, at, since=int(at - lasts), ingested=ingested, own_until=own, failing=failing))
    chance.shuffle(snapshots)
    for first in range(0, len(snapshots), 7):
        write(archive, *snapshots[first : first + 7], process=f"p{first % 3}")
    spans = [span_of(SITE, snapshot)[0] for snapshot in snapshots]
    past, history = archive.past(SITE), tuple(in_order(map(version_of, snapshots)))
    instants = {it + delta for span in spans for it in (span.first_seen, span.last_seen) for delta in (-1, 0, 0.5, 1)}
    for instant in sorted(instants | {it + KEEP for it in instants}):
        expected = digest_of(version_at(history, instant))
        for reader in (past, archive.past(SITE)):
            assert digest_of(reader.at(instant)) == expected, instant
    for span in spans:
        found_ = past.by_id(span.id)
        assert found_ is not None
        assert found_.last_seen == max(it.last_seen for it in spans if it.digest == span.digest)
        before = [it.first_seen for it in spans if it.first_seen < span.first_seen and it.digest != span.digest]
        version = Version(bytes.fromhex(span.digest), span.first_seen, span.last_seen, b"")
        earlier, following = past.around(version)
        if before and max(before) > span.first_seen - 60:
            assert earlier is not None
        if following is not None:
            assert following > span.first_seen
    assert [damage for damage in archive.verify() if damage] == []


class Measuring(Folder):
    """A folder that counts the bytes of the index that are read."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.bytes = 0
        self.reads = 0

    def lines(self, name: str) -> Iterator[Line]:
        self.reads += 1
        for line in super().lines(name):
            self.bytes += len(line.data)
            yield line


def test_a_site_that_fills_a_month_is_answered_from_few_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each fetch finds another file behind another long redirect, of 16 KiB."""
    monkeypatch.setattr(archive_index, "PIECE", 100)
    folder = Measuring(tmp_path)
    archive = Archive(folder)
    every, count = 10, 3_000
    for first in range(0, count, 500):
        write(
            archive,
            *(
                Snapshot(
                    Successful(200, b"User-agent: *\nDisallow: /%d\n" % (number % 7)),
                    NOW + number * every,
                    f"https://www.example.com/{'a' * (16_000 if number % 100 == 0 else 9)}{number}",
                )
                for number in range(first, first + 500)
            ),
        )
    closed = found(Successful(200, b"User-agent: *\nDisallow: /\n"), NOW + count * every)
    write(archive, closed)
    size = sum(path.stat().st_size for path in tmp_path.glob("index/**/*.ndjson"))
    assert size > 1_000_000
    for number in (3, count // 2, count):
        folder.bytes = folder.reads = 0
        version = archive.past(SITE).at(NOW + number * every + 1)
        assert version is not None
        assert version.first_seen == NOW + number * every
        assert folder.bytes < size / 10, folder.bytes
        folder.bytes = 0
        by_id = archive.past(SITE).by_id(version.id)
        assert by_id is not None
        assert by_id.digest == version.digest
        assert folder.bytes < size / 10, folder.bytes
        before, _ = archive.past(SITE).around(version)
        assert before is not None
    # Further questions about the time around it read nothing again.
    past = archive.past(SITE)
    past.at(NOW + 1010 * every)
    folder.reads = 0
    for number in range(20):
        assert past.at(NOW + 1010 * every + number) is not None
    assert folder.reads == 0


def test_a_line_that_the_index_lacks_is_damage(archive: Archive, place: str) -> None:
    write(archive, found(A, NOW), found(B, NOW + 1))
    write(archive, found(DOWN, NOW + 2), origin=BOT)
    files = files_at(place)
    files.clear(f"index/{folder_name(SITE)[:2]}")
    assert [damage.fault for damage in archive.verify() if damage] == ["the index lacks it: rebuild the index"] * 2
    archive.rebuild()
    assert [damage for damage in archive.verify() if damage] == []


def test_the_index_is_made_anew_from_the_log(archive: Archive, place: str) -> None:
    for number, access in enumerate(ACCESSES):
        write(archive, found(access, NOW + number), origin=SITE if number % 2 else BOT)
    files = files_at(place)
    before = index_of(files)
    assert len(before) == 2
    files.clear(next(iter(before)).rpartition("/")[0])
    files.append({f"index/00/{'0' * 64}/2026-09.ndjson": b"{}\n"})
    assert archive.rebuild() == len(ACCESSES)
    assert origins(files) == {folder_name(SITE), folder_name(BOT)}
    assert index_of(files) == before
