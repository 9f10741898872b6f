"""One sitemap: XML, an index, a list; and what pretends to be one."""

import gzip
import json

import pytest

from app.api.sites.sitemap import DEEPEST, URLS, Sitemap, SitemapText, read_sitemap, sitemap_json, sitemap_of

HERE = "https://www.example.com"
NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def urlset(*urls: str) -> str:
    return f"<urlset {NAMESPACE}>{''.join(f'<url><loc>{url}</loc></url>' for url in urls)}</urlset>"


def read(content: str | bytes, *, room: int = URLS, truncated: bool = False, sitemaps_of: str = HERE) -> Sitemap:
    data = content if isinstance(content, bytes) else content.encode()
    return read_sitemap(SitemapText(data, HERE, sitemaps_of, room, truncated))


@pytest.mark.parametrize(
    ("content", "urls"),
    [
        (urlset(f"{HERE}/a", f"{HERE}/b", f"{HERE}/a"), [f"{HERE}/a", f"{HERE}/b"]),
        (f'<?xml version="1.0" encoding="UTF-8"?>\n<!-- by hand -->\n{urlset(f"{HERE}/ü")}', [f"{HERE}/ü"]),
        (f"\ufeff  {urlset(f'{HERE}/a')}", [f"{HERE}/a"]),
        (urlset(f"\n  {HERE}/a b\n"), [f"{HERE}/a%20b"]),
        (
            urlset(f"<![CDATA[{HERE}/?a=1&b=2]]>", f"{HERE}/?a=1&amp;b=2&#x26;"),
            [f"{HERE}/?a=1&b=2", f"{HERE}/?a=1&b=2&"],
        ),
        (f'<s:urlset xmlns:s="x"><s:url><s:loc>{HERE}/a</s:loc></s:url></s:urlset>', [f"{HERE}/a"]),
        (
            f"<urlset xmlns:i='y'><url><loc>{HERE}/a</loc><i:image><i:loc>{HERE}/b</i:loc></i:image></url></urlset>",
            [f"{HERE}/a"],
        ),
        (f"{HERE}/a\r\n\r\n {HERE}/b \n{HERE}/a", [f"{HERE}/a", f"{HERE}/b"]),
        (urlset(), []),
    ],
)
def test_urls_of_pages_are_read_in_order_and_once(content: str, urls: list[str]) -> None:
    assert read(content) == Sitemap(urls)


@pytest.mark.parametrize("encoding", ["utf-16", "iso-8859-1"])
def test_encoding_that_the_file_names_is_read(encoding: str) -> None:
    content = f'<?xml version="1.0" encoding="{encoding}"?>{urlset(f"{HERE}/ü")}'
    assert read(content.encode(encoding)).urls == [f"{HERE}/ü"]


def test_urls_of_other_origins_are_counted_and_left_out() -> None:
    others = (
        "http://www.example.com/a",
        "https://example.com/a",
        "https://www.example.com:8443/a",
        "/a",
        "javascript:a",
    )
    assert read(urlset(*others, f"{HERE}/a")) == Sitemap([f"{HERE}/a"], others=5)
    index = urlset(f"{HERE}/a", "https://s.example/1.xml").replace("urlset", "sitemapindex").replace("url>", "sitemap>")
    assert read(index, sitemaps_of="https://s.example") == Sitemap(["https://s.example/1.xml"], is_index=True, others=1)


def test_no_more_urls_are_taken_than_fit() -> None:
    urls = [f"{HERE}/{number}" for number in range(4)]
    assert read(urlset(*urls), room=3) == Sitemap(urls[:3], more=True)
    assert read(urlset(*urls[:3], urls[0]), room=3) == Sitemap(urls[:3])


def test_first_part_of_a_longer_file_gives_its_whole_urls() -> None:
    content = urlset(f"{HERE}/a", f"{HERE}/long")
    cut = content[: content.index("ong")]
    assert read(cut, truncated=True) == Sitemap([f"{HERE}/a"], more=True)
    assert read(f"{HERE}/a\n{HERE}/lo", truncated=True) == Sitemap([f"{HERE}/a"], more=True)


LAUGHS = "<!DOCTYPE urlset [<!ENTITY a 'lol'><!ENTITY b '&a;&a;&a;&a;&a;&a;'>]>" + urlset(f"{HERE}/&b;")
OUTSIDE = "<!DOCTYPE urlset [<!ENTITY a SYSTEM 'file:///etc/hostname'>]>" + urlset(f"{HERE}/&a;")


NO_SITEMAPS: dict[str, tuple[str | bytes, str]] = {
    "entities of entities": (LAUGHS, "document type"),
    "a file of the machine": (OUTSIDE, "document type"),
    "a page": ("<!DOCTYPE html><title>Gone</title>", "a web page"),
    "a page without a doctype": ("<html><body>Gone</body></html>", "its root element is 'html'"),
    "deep": ("<urlset>" + "<a>" * DEEPEST + "</a>" * DEEPEST + "</urlset>", f"More than {DEEPEST}"),
    "one long tag": ("<urlset a='" + "a" * 1_000_000, "damaged in line 1"),
    "crossed tags": ("<urlset><url><loc>x</urlset>", "damaged in line 1: mismatched tag"),
    "an entity of HTML": (urlset(f"{HERE}/&nbsp;"), "undefined entity"),
    "the end is missing": (urlset(f"{HERE}/a")[:-1], "damaged in line 1"),
    "no encoding": ('<?xml version="1.0" encoding="none-such"?><urlset/>', "encoding that cannot be read"),
    "an encoding of host names": ('<?xml version="1.0" encoding="punycode"?><urlset/>', ""),
    "nothing": ("", "neither XML nor a list"),
    "a sentence": ("No such page", "neither XML nor a list"),
    "bytes": (gzip.compress(b"x"), "neither XML nor a list"),
    "half a character": (b"\xff\xfe", "damaged in line 1"),
}


@pytest.mark.parametrize("name", NO_SITEMAPS)
def test_what_is_no_sitemap_says_why(name: str) -> None:
    content, wrong = NO_SITEMAPS[name]
    found = read(content)
    assert found == Sitemap([], wrong=found.wrong)
    assert wrong in found.wrong
    assert found.wrong.endswith(".")


def test_url_that_is_too_long_is_none() -> None:
    assert read(urlset(f"{HERE}/{'a' * 17_000}", f"{HERE}/b")) == Sitemap([f"{HERE}/b"])


def test_largest_sitemap_is_read_in_a_helper_as_json() -> None:
    urls = [f"{HERE}/{number}" for number in range(URLS + 1)]
    found = sitemap_json(SitemapText(urlset(*urls).encode(), HERE, HERE, URLS))
    assert len(json.loads(found)[0]) == URLS
    assert sitemap_of(found) == Sitemap(urls[:URLS], more=True)
