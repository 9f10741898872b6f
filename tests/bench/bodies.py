"""Files and paths for benchmarks, from a seed, so that every run measures the same."""

from random import Random

PATH_LENGTH = 80

# fmt: off
_WORDS = (
    "about", "account", "admin", "ajax", "archive", "article", "basket", "blog", "book", "cart", "catalog",
    "category", "checkout", "comment", "compare", "contact", "data", "detail", "download", "edit", "export", "feed",
    "filter", "forum", "gallery", "group", "help", "home", "image", "index", "item", "lang", "list", "login", "media",
    "member", "message", "mobile", "news", "order", "page", "partner", "photo", "post", "preview", "price", "print",
    "private", "product", "profile", "public", "query", "rating", "register", "report", "result", "review", "search",
    "section", "session", "shop", "sort", "source", "static", "stats", "store", "support", "tag", "terms", "theme",
    "topic", "track", "upload", "user", "video", "view", "wiki",
)
# fmt: on
_ENDINGS = (".pdf", ".php", ".asp", ".xml", ".jpg", ".json")


def _name(random: Random) -> str:
    return random.choice(_WORDS) + (str(random.randrange(1000)) if random.random() < 0.5 else "")


def _path(random: Random, length: int) -> str:
    path = ""
    while len(path) < length:
        path += "/" + _name(random)
    return path[:length]


def _pattern(random: Random, number: int) -> str:
    if number % 5:
        return _path(random, random.randrange(8, 40))
    forms = (
        f"/*/{_name(random)}-{number}/",
        f"/*?{_name(random)}{number}=",
        f"/{_name(random)}/*/{_name(random)}{number}",
        f"/*{_name(random)}{number}{random.choice(_ENDINGS)}$",
    )
    return random.choice(forms)


def body(rules: int) -> bytes:
    """A file with one group of `rules` rules: four prefixes per wildcard, one Allow per four Disallow."""
    random = Random(rules)
    patterns = [_pattern(random, number) for number in range(1, rules + 1)]
    lines = [f"{'Allow' if random.random() < 0.2 else 'Disallow'}: {pattern}" for pattern in patterns]
    return "\n".join(["User-agent: *", *lines, ""]).encode()


def paths(rules: int, *, queries: bool) -> list[str]:
    """64 paths of PATH_LENGTH characters: half hit a rule of `body(rules)`; with `queries`, half have one."""
    random = Random(rules + 1)
    patterns = [line.partition(": ")[2] for line in body(rules).decode().splitlines()[1:]]
    found = []
    for number in range(64):
        head, tail = random.choice(patterns).rstrip("$"), ""
        if "*" in head:
            head, tail = head.split("*")
        if number % 2:
            head, tail = "", ""
        path = head + _path(random, PATH_LENGTH - len(head + tail)) + tail
        if queries and number % 4 < 2 and "?" not in path:
            path = path[:60] + "?page=12&sort=by%20a"
        found.append(path if queries else path.replace("?", "-"))
    return found
