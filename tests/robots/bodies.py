"""Bodies for hypothesis: realistic lines with every kind of mistake, in every encoding."""

from typing import Literal

from hypothesis import strategies as st

from robots_core.robots.lines import LINE_LIMIT
from tests.robots.naive import NAMED, PREFIXES, TYPOS

_NAMES = sorted({*NAMED, *TYPOS, *(name for names in PREFIXES.values() for name in names), "foo", "user-agen", ""})
_COMMON = ["user-agent", "user-agent", "user-agent", "robot-version", "disallow", "crawl-delay", "disalow", "allow"]
_KEYS = (st.sampled_from(_COMMON) | st.sampled_from(_COMMON) | st.sampled_from(_NAMES)).flatmap(
    lambda name: st.sampled_from([name, name, name.title(), name.upper(), name + "s", name + "AITraining"])
)
_NUMBERS = ["2", "2.0", "2.0.1", "2.0.", "2.0.1234567890", "2.1", "1.0", "20"]
_TOKENS = ["", "*", "a", "A", "foo", "Foo", "Foo Bar", "foo/1.0", "1a", "* x", "*x", "*\vx", "_-"]
_PATTERNS = ["/", "/x y", "é\xff", "a:b", ":", "x" * LINE_LIMIT]

VALUES = st.sampled_from([*_NUMBERS, *_TOKENS, *_PATTERNS])
_COLONS = st.sampled_from([":", ": ", ": ", ": ", " : ", ":\t", " ", "\t ", "\v:\f", "  :", ""])
_COMMENTS = st.sampled_from(["", "", "", "", "", "", "#", " # c: d", "\0", "\0#", "#\0", " "])
_SAID = st.tuples(st.sampled_from(["", "", " ", "\t\v"]), _KEYS, _COLONS, VALUES, _COMMENTS).map("".join)
_OTHERS = st.sampled_from(["", "", " ", "#", "word", "two words", "three words here", "a\vb c", "x y z: 1", "\0"])

LINES = st.one_of(_SAID, _SAID, _SAID, _OTHERS)
"""A line without its end; each character is a byte."""

_ENDINGS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r", "\n\r", "\n\n"])
_STARTS = st.sampled_from(
    [b"", b"", b"\xef\xbb\xbf", b"\xef\xbb", b"\xef", b"\0", b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"]
)
_ORDERS: st.SearchStrategy[Literal["little", "big"]] = st.sampled_from(["little", "big"])
_UNITS = st.sampled_from([0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xE000, 0xFFFF, 0x10FFFF, 0x110000, 0x80, 0x7FF, 0x800])
_BORDERS = st.lists(_UNITS | st.sampled_from(list(map(ord, "Allow:/\r\n#"))) | st.integers(0, 0xFFFFFFFF), max_size=20)


@st.composite
def written(draw: st.DrawFn) -> bytes:
    """Realistic lines."""
    lines = draw(st.lists(st.tuples(LINES, _ENDINGS).map("".join), max_size=25))
    return draw(_STARTS) + ("".join(lines) + draw(st.sampled_from(["", "Disallow: /last"]))).encode("latin-1")


@st.composite
def wide(draw: st.DrawFn) -> bytes:
    """UTF-16 and UTF-32, including invalid text."""
    width, order = draw(st.sampled_from([2, 4])), draw(_ORDERS)
    units = [0xFEFF, *draw(_BORDERS)]
    return b"".join((unit % (1 << 8 * width)).to_bytes(width, order) for unit in units) + draw(st.binary(max_size=3))


ANY = written() | wide() | st.binary(max_size=400) | st.text("aA:#* \t\v\f\r\n\0-/", max_size=80).map(str.encode)
"""Any bytes; most are realistic lines."""
