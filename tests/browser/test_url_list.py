"""The tester page with the URLs of a list or a sitemap, and the download of those that are blocked."""

import asyncio
import csv
import gzip
import io

import pytest
from playwright.async_api import Browser, expect

from tests.browser.tester import visiting

pytestmark = pytest.mark.asyncio(loop_scope="session")

ROBOTS = "User-agent: *\nDisallow: /basket/\n\nUser-agent: OpenBot\nAllow: /\n"
PAGES = (
    '<?xml version="1.0"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
    ' xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">\n'
    "<url><loc> https://h.example/basket/?a=1&amp;b=2 </loc><priority>1</priority>"
    "<image:image><image:loc>https://h.example/basket/picture</image:loc></image:image></url>\n"
    "<url><loc><![CDATA[https://h.example/basket/a allow]]></loc></url>\n"
    "<url><loc>https://h.example/open</loc></url><url><loc>https://other.example/basket/</loc></url></urlset>\n"
)
LINES = "https://h.example/basket/?a=1&b=2\nhttps://h.example/basket/a%20allow\nhttps://h.example/open\nhttps://other.example/basket/"
INDEX = '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><sitemap>'
INDEX += "<loc>https://h/</loc></sitemap></sitemapindex>"
LAUGHS = '<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><urlset><url><loc>&b;</loc></url></urlset>'

REFUSED = {
    "index.xml": (INDEX.encode(), "This is an index of sitemaps"),
    "laughs.xml": (LAUGHS.encode(), "it has a document type"),
    "broken.xml": (b"<urlset><url>", "cannot be read as a sitemap"),
    "feed.xml": (b"<rss/>", "cannot be read as a sitemap"),
    "none.xml": (b"<urlset/>", "There is no URL in this file."),
    "empty.txt": (b"\n \n", "There is no URL in this file."),
    "bomb.gz": (gzip.compress(bytes(10_000_001)), "decompresses to more; 10,000,000 bytes at most"),
    "large.txt": (b"x" * 10_000_001, "has 10,000,001 bytes; 10,000,000 bytes at most"),
    "cut.gz": (gzip.compress(PAGES.encode())[:40], "cannot be decompressed"),
    "many.txt": (b"/a\n" * 50_001, "50,001 URLs; 50,000 at most"),
}


async def test_lists_and_sitemaps_are_tested(service: str, browser: Browser) -> None:
    async with visiting(browser, service) as visitor:
        await visitor.open()
        chooser, said = (visitor.page.locator(name) for name in ("#url-list", "#urls-said"))

        async def give(name: str, data: bytes) -> None:
            await chooser.set_input_files({"name": name, "mimeType": "text/plain", "buffer": data})

        first = await visitor.value("urls")
        for name, (data, sentence) in REFUSED.items():
            await give(name, data)
            await expect(said).to_contain_text(sentence)
            assert await visitor.value("urls") == first
        for name, data in (("pages.xml", PAGES.encode()), ("pages.xml.gz", gzip.compress(PAGES.encode()))):
            await give(name, data)
            await visitor.holds("urls", LINES)
            assert await visitor.text("#urls-said") == ""
            await visitor.page.locator("#urls-back").click()
            await visitor.holds("urls", first)
        await give("list.txt", b"\xef\xbb\xbf/a\r\n\r\n/b\r\n")
        await visitor.holds("urls", "/a\n/b")
        await visitor.write("urls", PAGES)
        await visitor.holds("urls", LINES)
        await visitor.ask(robots=ROBOTS, agents="ExampleBot\nOpenBot")
        async with visitor.page.expect_download() as downloading:
            await visitor.page.locator("#download-blocked").click()
        download = await downloading.value
        assert download.suggested_filename == "blocked-urls.csv"
        path = await download.path()
        text = (await asyncio.to_thread(path.read_bytes)).decode()
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
        assert {(row["url"], row["crawler"], row["verdict"], row["rule"], row["line"]) for row in rows} == {
            (url, "ExampleBot", "disallow", "Disallow: /basket/", "2") for url in LINES.split("\n")[:2]
        }
        await visitor.ask(robots="User-agent: *\nAllow: /\n")
        await expect(visitor.page.locator("#download-blocked")).to_be_hidden()


async def test_blocked_urls_are_no_formulas(service: str, browser: Browser) -> None:
    script = """async () => {
        const { blocked } = await import("./web/export.js");
        const row = (agent) => ({ agent, dialect: "", verdict: "disallow", rule: { text: "-x", line: 2 } });
        return blocked([{ text: "=1+1", row: 0 }], [["+a", "@a"].map(row)]).text;
    }"""
    async with visiting(browser, service) as visitor:
        await visitor.open()
        assert (await visitor.evaluate(script)).split("\r\n")[1:3] == [
            "'=1+1,'+a,,disallow,'-x,2",
            "'=1+1,'@a,,disallow,'-x,2",
        ]
