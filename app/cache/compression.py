"""Compress robots.txt files with a dictionary of what most of them have in common (Zstandard, RFC 8878).

A frame names its dictionary, so values stay readable when a later release compresses with another one. The dictionaries
are files of this package, `dictionaries/N.dict`: `python -m tests.cache.train_dictionary` trains the next, and none is
ever changed or removed.
"""

import sys
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final

if sys.version_info >= (3, 14):
    from compression import zstd as zstd
else:
    from backports import zstd as zstd

CURRENT: Final = "1"
"""The name of the dictionary that is compressed with."""

# At level 3 the largest file blocks the event loop for less time than zlib's fastest level would.
_OPTIONS: Final[Mapping[int, int]] = {
    zstd.CompressionParameter.compression_level: 3,
    zstd.CompressionParameter.checksum_flag: 1,
}

# A frame that asks for a larger window than its limit is refused, so none makes us allocate more than 8 MiB.
_BOUNDS: Final[Mapping[int, int]] = {zstd.DecompressionParameter.window_log_max: 23}

_PIECE: Final = 4096  # bytes that are decompressed at once to find the first line


class CompressionError(ValueError):
    """Bytes that are not one whole frame with a known dictionary, or whose content is too long."""


def compress(data: bytes) -> bytes:
    """The data as a frame with a checksum."""
    return zstd.compress(data, options=_OPTIONS, zstd_dict=_by_name(CURRENT).as_digested_dict)


def decompress(frame: bytes, limit: int) -> bytes:
    """The content of a frame, of at most `limit` bytes; raises CompressionError."""
    try:
        stream = _decompressor(frame)
        data = stream.decompress(frame, limit + 1)
    except zstd.ZstdError as error:
        raise CompressionError(str(error)) from error
    if not stream.eof or stream.unused_data or len(data) > limit:
        raise CompressionError("not one whole frame within the limit")
    return data


def first_line(frame: bytes, limit: int) -> bytes:
    """The content of a frame up to its first line break, of at most `limit` bytes; the rest stays compressed.

    Raises CompressionError.
    """
    try:
        stream = _decompressor(frame)
        data = stream.decompress(frame, _PIECE)
        while b"\n" not in data and len(data) <= limit and not stream.eof:
            more = stream.decompress(b"", _PIECE)
            if not more:
                break
            data += more
    except (zstd.ZstdError, EOFError) as error:
        raise CompressionError(str(error)) from error
    line, end, _ = data.partition(b"\n")
    if not end or len(line) > limit:
        raise CompressionError("no line within the limit")
    return line


def _decompressor(frame: bytes) -> zstd.ZstdDecompressor:
    dictionary = _by_id().get(zstd.get_frame_info(frame).dictionary_id)
    if dictionary is None:
        raise CompressionError("unknown dictionary")
    return zstd.ZstdDecompressor(zstd_dict=dictionary, options=_BOUNDS)


@cache
def _by_name(name: str) -> zstd.ZstdDict:
    return zstd.ZstdDict(files("app.cache").joinpath("dictionaries", f"{name}.dict").read_bytes())


@cache
def _by_id() -> Mapping[int, zstd.ZstdDict]:
    names = [file.name.removesuffix(".dict") for file in files("app.cache").joinpath("dictionaries").iterdir()]
    return {dictionary.dict_id: dictionary for dictionary in map(_by_name, names)}
