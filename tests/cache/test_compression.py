"""Frames name their dictionary and are bounded; anything else is an error (RFC 8878)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cache.compression import CURRENT, CompressionError, _by_name, compress, decompress, zstd
from tests.corpus import real_files

TEXT = b"User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\n"


@given(st.binary(max_size=2000))
def test_what_was_compressed_is_decompressed(data: bytes) -> None:
    assert decompress(compress(data), len(data)) == data


@given(st.binary(max_size=2000))
def test_only_compression_errors_are_raised(data: bytes) -> None:
    with pytest.raises(CompressionError):
        decompress(data, 10_000)


def test_content_beyond_the_limit_is_an_error() -> None:
    frame = compress(bytes(50_000_000))
    with pytest.raises(CompressionError, match="within the limit"):
        decompress(frame, 49_999_999)


def test_a_frame_that_is_cut_off_or_followed_by_bytes_is_an_error() -> None:
    frame = compress(TEXT)
    for broken in (frame[:-1], frame + b"x", frame + frame, b""):
        with pytest.raises(CompressionError):
            decompress(broken, 1000)


def test_damage_is_found_by_the_checksum() -> None:
    frame = bytearray(compress(TEXT))
    frame[-1] ^= 1
    with pytest.raises(CompressionError):
        decompress(bytes(frame), 1000)


def test_a_frame_with_an_unknown_dictionary_or_without_one_is_an_error() -> None:
    other = zstd.train_dict([b"Disallow: /%d/%d/\n" % (i, i * i) for i in range(2000)], 4096)
    for frame in (zstd.compress(TEXT, zstd_dict=other), zstd.compress(TEXT)):
        with pytest.raises(CompressionError, match="unknown dictionary"):
            decompress(frame, 1000)


def test_a_frame_with_a_large_window_is_refused() -> None:
    frames = []
    for window_log in (23, 27):
        options: dict[int, int] = {zstd.CompressionParameter.window_log: window_log}
        stream = zstd.ZstdCompressor(options=options, zstd_dict=_by_name(CURRENT))
        frames.append(stream.compress(TEXT) + stream.flush())
    assert decompress(frames[0], 1000) == TEXT
    with pytest.raises(CompressionError):
        decompress(frames[1], 1000)


def test_common_files_are_compressed_to_a_third() -> None:
    files = [file for file in real_files().values() if 100 < len(file) < 3000]
    assert sum(len(compress(file)) for file in files) < sum(map(len, files)) / 3
