"""The meta tags of a page: those that libxml2's HTML parser finds, in steps linear in the page."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, cast

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from lxml import etree

from robots_core import meta_tags
from robots_core.meta_tags import ATTRIBUTES, LOAD_CHARS, LOADS, Metas, metas_json, read_metas

NOINDEX = "<meta name=robots content=noindex>"
PIECES = f"""
{NOINDEX} <META\tNAME='a'\tCONTENT="b"> <meta\fcontent=x\fname=y/> <meta/name=s/content=t>
<meta\tname=z\tcontent='q>r'> <meta\tname=robots\tname=two\tcontent=1\tcontent=2>
<meta\tname=n\tcontent=&amp;&quot;&#65;&nbsp> <meta\tname=d\tcontent=a"b>
<meta\tname\tcontent> <meta\tname=\tcontent=x> <a<meta\tname=i\tcontent=j> <META <meta\tname=cut\tcontent=
<b> </i> <!-- --> --!> <!--> <!---> <script> </script> <SCRIPT\tsrc=x> </script\t>
<title> </TITLE> <textarea> </textarea> <style> </style> <xmp> </xmp>
<iframe> </iframe> <noembed> </noembed> <noscript> </noscript> <noframes> </noframes>
<plaintext> </plaintext> <p\ta=' <p\tb=" <p\ta=b'c> > ' " = / \n x < </ </> <?xml\t?> <!doctype\thtml> <![CDATA[ ]]>
<svg> </svg> <template> <body> </html> <select> <frameset> <table> é <é> </é> <\u212a> </\u017fcript> </\u017ftyle>
""".replace("\n", " ").split(" ")
"""What pages are made of, and what breaks them. Tabs stand for blanks."""


class TreeParser:
    """Collects meta tags as libxml2's parser for HTML reports them."""

    def __init__(self) -> None:
        self.metas: list[tuple[str, str]] = []

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag == "meta" and "name" in attributes and "content" in attributes:
            self.metas.append((attributes["name"], attributes["content"]))

    def close(self) -> None:
        """Handle the end of the page; called by the parser."""


def parsed(html: str) -> list[tuple[str, str]]:
    target = TreeParser()
    parser: Any = etree.HTMLParser(target=cast("Any", target), encoding="utf-8", no_network=True)
    parser.feed(html.encode())
    parser.close()
    return target.metas


def read(html: str) -> list[tuple[str, str]]:
    return read_metas(html, 2**20).tags


@given(st.lists(st.sampled_from(PIECES), max_size=30))
@example(["<script>", "<script>", "</script>", NOINDEX])
@example(["<script>", "<!--", "<script>", "</script>", NOINDEX, "</script>", NOINDEX])
@example(["<script>", "<!--", "<script>", "<!-->", "</script>", NOINDEX])
@example(["<title>", "</style>", NOINDEX, "</TITLE>", NOINDEX])
@example(["<p\ta='", NOINDEX])
def test_a_page_has_the_meta_tags_that_a_tree_parser_finds(pieces: list[str]) -> None:
    html = "<p>" + "".join(pieces)
    assert read(html) == parsed(html)


def test_each_end_of_a_comment_is_where_a_tree_parser_finds_it() -> None:
    for length in range(6):
        for written in product("-!>", repeat=length):
            for comment in f"<!-{''.join(written)}", f"<!--{''.join(written)}":
                html = f"<p>{comment}{NOINDEX}-->{NOINDEX}"
                assert read(html) == parsed(html), html


def test_a_number_too_long_for_a_character_stays_as_it_is() -> None:
    reference = "&#" + "9" * 5000 + ";"
    assert read(f"<meta name=robots content='{reference}'>") == [("robots", reference)]


def test_attributes_of_a_meta_tag_beyond_the_limit_are_ignored() -> None:
    first = "".join(f" a{number}" for number in range(ATTRIBUTES - 2))
    assert read(f"<meta{first} name=robots content=x>") == [("robots", "x")]
    assert read(f"<meta{first} more name=robots content=x>") == []


@pytest.mark.parametrize("count", range(1, 6))
def test_no_more_meta_tags_are_read_than_the_limit_permits(count: int) -> None:
    each = len("robotsnoindex")
    metas = read_metas(NOINDEX * count, 3 * each)
    assert metas[:2] == (min(count, 4) * each, [("robots", "noindex")] * min(count, 3))


@given(st.text(max_size=50))
@example("&#xd800;")
def test_json_has_the_same_meta_tags(text: str) -> None:
    html = f'{text}<meta name="{text}" content="{text}">'
    found = json.loads(metas_json(html.encode(), 2**20))
    assert Metas(found[0], [tuple(it) for it in found[1]], *found[2:]) == read_metas(html, 2**20)


class Counting:
    """A regular expression that counts the characters that it passes. `tests/test_regex_steps.py` counts its steps."""

    passed = 0

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern

    def match(self, text: str, begin: int) -> re.Match[str] | None:
        return self._count(self._pattern.match(text, begin), text, begin)

    def search(self, text: str, begin: int) -> re.Match[str] | None:
        return self._count(self._pattern.search(text, begin), text, begin)

    def finditer(self, text: str, begin: int, end: int = 2**20) -> Iterator[re.Match[str]]:
        for found in self._pattern.finditer(text, begin, end):
            Counting.passed += found.end() - begin
            begin = found.end()
            yield found

    def _count(self, found: re.Match[str] | None, text: str, begin: int) -> re.Match[str] | None:
        Counting.passed += (len(text) if found is None else found.end()) - begin
        return found


@pytest.mark.parametrize(
    "page",
    [
        lambda n: "<b>" * (n // 6) + "</i>" * (n // 8),
        lambda n: "<table><td>" * (n // 22) + "</tr>" * (n // 10),
        lambda n: "<b>" * (n // 4) + "</i>" * (n // 16),
        lambda n: "<div>" * (n // 6) + "</p>" * (n // 24),
        lambda n: "<" * n,
        lambda n: "<!-- " * (n // 5),
        lambda n: "<!>" * (n // 3),
        lambda n: "<title></style>" * (n // 15),
        lambda n: "<script><!--<script></script>" * (n // 29),
        lambda n: '</a b=">' * (n // 8),
        lambda n: "<a b='" * (n // 6),
        lambda n: "<meta name=a content" * (n // 20),
        lambda n: "<p " + "a=b " * (n // 4),
        lambda n: "<meta " + "a = 'b'" * (n // 7) + ">",
    ],
)
def test_each_character_of_a_page_is_read_a_few_times(page: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in list(vars(meta_tags).items()):
        if isinstance(value, re.Pattern):
            monkeypatch.setattr(meta_tags, name, Counting(value))
    for size in (2**14, 2**17):
        html = page(size)
        Counting.passed = 0
        read(html)
        assert 0 < Counting.passed < 4 * len(html)


def test_style_sheets_and_scripts_are_listed_as_written() -> None:
    html = """<base href=/shop/><base href=/other/>
    <link rel="preload stylesheet" href="a.css?x=1&amp;y=2"><LINK REL=StyleSheet HREF=' b.css '>
    <link rel=icon href=c.ico><link rel=stylesheet>
    <script src=//cdn.example/d.js></script><script>"<script src=e.js>"</script><script src=""></script>
    <!-- <script src=f.js></script> --><img src=g.png>"""
    found = read_metas(html, 2**20)
    assert (found.loads, found.base) == (["a.css?x=1&y=2", "b.css", "//cdn.example/d.js"], "/shop/")


def test_no_more_are_listed_than_are_read() -> None:
    found = read_metas(
        f"<script src={'a' * (LOAD_CHARS + 1)}></script>" + "<script src=a></script>" * (LOADS + 1), 2**20
    )
    assert found.loads == ["a"] * LOADS
