"""Questions about real and damaged files, the same for each seed: every build and every entrance answers alike."""

import re
from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from tests.corpus import real_files

AGENTS = (
    *("ExampleBot", "Googlebot", "googlebot-news", "bingbot", "SeznamBot", "GPTBot", "AdsBot-Google", "*", "YandexBot"),
    *("Mozilla/5.0 (compatible; ExampleBot/1.0; +https://www.example.com/bot)", "curl/8.5", "a", "Applebot-Extended"),
)
NO_AGENTS = ("", "()", "ä", "x" * 3000)
OUTCOMES = (
    "404",
    "403",
    "401",
    "429",
    "503",
    "timeout",
    "dns",
    "challenge",
    "blocked_address",
    "redirect_loop",
    "refused_redirect",
    "unreachable_redirect",
    "bad_response",
    "tls",
    "connection",
    "proxy",
    "451",
    "599",
)
NO_URLS = (
    *("", "/x", "ftp://{host}/", "https:///x", "https://{host}\\@other.example/", "https://{host}:99999/", "{host}/x"),
    *(
        "https://a b/",
        "https://{host}/" + "a" * 17_000,
        "http:/{host}/x",
        "http:x//y",
        "https://[::1/",
        "https://1.2.3/",
    ),
)
ODD = (
    *(
        "https://{host}?q=/search",
        "https://{host}#f",
        "https://{host}",
        "HTTPS://{upper}:443{path}",
        "https://u:p@{host}{path}",
    ),
    *("https://{host}.{path}", "https://{host}{path}#f?x", "https://{host}/robots.txt", "https://{host}/robots.txt?x"),
    *("https://{host}/robots.txt#x", "https://{host}//{path}", "https://unknown.{host}{path}", "http://{host}{path}"),
    *(
        "https://{host}/\u00e9\U0001f577?q=%3A:/",
        "https://{host}/%",
        "https://{host}/..{path}",
        "https://b\u00fccher.{host}/",
    ),
)

DAMAGE = (b"\r", b"\n", b"*", b"$", b"%", b"\xff", b":", b"\0")

_PATH = re.compile(rb"(?i)allow:[ \t]*([^\r\n#]{1,100})")


class Asked(NamedTuple):
    """A question; `file` is the number of a file."""

    file: int
    url: str
    agent: str


def host(file: int) -> str:
    """The host of a file."""
    return f"h{file:05}.example"


def files(seed: int, count: int) -> list[bytes | str]:
    """Real files, every fifth of them damaged; and outcomes without a file."""
    random, real = Random(seed), list(real_files().values())
    found: list[bytes | str] = []
    for number in range(count):
        body = bytearray(random.choice(real)[:20_000])
        if number % 10 == 9:
            found.append(random.choice(OUTCOMES))
            continue
        if number % 5 == 0 and body:
            for _ in range(random.randint(1, 20)):
                at = random.randrange(len(body))
                body[at : at + random.randint(0, 3)] = random.choice(
                    [b"\r", b"\n", b"*", b"$", b"%", b"\xff", b":", b"\0"]
                )
        found.append(bytes(body))
    return found


def questions(seed: int, files: list[bytes | str], count: int) -> Iterator[Asked]:
    """Questions about the files: paths of their rules, other paths, and URLs and agents that are odd or none."""
    random = Random(seed)
    paths = [
        [] if isinstance(body, str) else [found.decode("utf-8", "replace").strip() for found in _PATH.findall(body)]
        for body in files
    ]
    for _ in range(count):
        file = random.randrange(len(files))
        kind = random.random()
        path = random.choice(paths[file]) if paths[file] and kind < 0.7 else "/a/b.html?x=1&y=%3A"
        path = path.replace("*", random.choice(["", "x", "a/b?c=:"])).replace("$", "")
        path = f"/{path.lstrip('/')}{random.choice(['', '', 'x', '?q=a:b', '/index.html', '%2f'])}"
        pattern = "https://{host}{path}" if kind < 0.9 else random.choice(ODD if kind < 0.98 else NO_URLS)
        agent = random.choice(AGENTS) if random.random() < 0.99 else random.choice(NO_AGENTS)
        url = pattern.replace("{path}", path).replace("{upper}", host(file).upper()).replace("{host}", host(file))
        yield Asked(file, url, agent)
