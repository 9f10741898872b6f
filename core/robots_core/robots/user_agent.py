"""Find the crawler that a User-Agent header names (RFC 9110 10.1.5, spec C13).

A header is products `name[/version]`, most significant first, and comments in parentheses. Crawlers write their name as
a product, behind `compatible`, or in a comment beside the address of a page about them. Everything here is linear in
the text, and nothing recurses.
"""

import re
from collections.abc import Container, Iterable, Sequence
from functools import cache
from itertools import chain
from typing import Final, NamedTuple

TOKEN: Final = re.compile(r"[A-Za-z0-9_-]+")
"""A product token, where C2 cuts it."""

_PARENTHESIS: Final = re.compile(r"([()])")
_BETWEEN_WORDS: Final = re.compile(r"[\s,]+")
_COMPATIBLE: Final = re.compile(r"compatible:?", re.IGNORECASE)
_LIKE: Final = re.compile(r"(?<![A-Za-z0-9_-])like\s+", re.IGNORECASE)
_ADDRESS: Final = re.compile(r"\+|www\.|mailto:", re.IGNORECASE)
_SCHEME: Final = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-."


@cache
def libraries() -> frozenset[str]:
    """The lower-case names of libraries that crawlers are built with (spec C13b)."""
    return frozenset(_names()["libraries"]["names"])


@cache
def _compatibility() -> frozenset[str]:
    names = _names()
    return frozenset(names["browsers"]["names"] + names["systems"]["names"])


def _names() -> dict[str, dict[str, list[str]]]:
    # Here, since product tokens alone need none of this.
    import tomllib
    from importlib.resources import files

    return tomllib.loads(files("robots_core.robots").joinpath("compatibility.toml").read_text(encoding="utf-8"))


_LISTED: Final = re.compile(r"\*|[A-Za-z0-9_-]+(?:/[0-9A-Za-z._-]*)?")
_BETWEEN_NAMES: Final = re.compile(r"[,;|\r\n]")
_BETWEEN_KNOWN: Final = re.compile(r"[\s&+]+(?:(?:and|or)\s+)?", re.IGNORECASE)


def names_in_list(text: str, known: Container[str]) -> Sequence[str]:
    """The names of a list; empty for a header. Where blanks alone separate them, all are in `known`, in lower case."""
    names = [name.strip() for name in _BETWEEN_NAMES.split(text)]
    names = [name for name in names if name]
    if len(names) > 1:
        return names if all(map(_LISTED.fullmatch, names)) else ()
    names = _BETWEEN_KNOWN.split(text)
    return names if len(names) > 1 and all(name.lower() in known for name in names) else ()


class Named(NamedTuple):
    """The product token of a header. `unnamed`: nothing names a crawler, and this is merely the first product."""

    token: str
    unnamed: bool = False


class _Part(NamedTuple):
    """The words of a part of a header, but its addresses; `address` says whether it has one."""

    words: Sequence[str]
    address: bool = False

    @property
    def product(self) -> str:
        """The name of the product that the part begins with, or "" if it begins otherwise."""
        found = TOKEN.match(self.words[0]) if self.words else None
        return "" if found is None else found[0]

    def begins_with(self, known: Container[str]) -> bool:
        """Whether it begins with the name of a known crawler."""
        return self.product.lower() in known

    def is_name(self, known: Container[str]) -> bool:
        """Whether it begins with what may name a crawler: no compatibility name, and no number but a known one."""
        name = self.product.lower()
        return name not in _compatibility() and (name.strip("0123456789-_") != "" or name in known)

    def is_text(self, known: Container[str]) -> bool:
        """Whether it is several words without a version or the name of a known crawler, as `not on Windows server`."""
        name = self.name(known)
        return len(self.words) > 1 and name.lower() not in known and not any("/" in word for word in self.words)

    def name(self, known: Container[str]) -> str:
        """The longest name of a known crawler among its words, or else the product that it begins with (spec C13d)."""
        words = (token for word in self.words for token in TOKEN.findall(word))
        named = [token for token in words if token.lower() in known and token.lower() not in libraries()]
        return max(named, key=len, default=self.product)


def named_in(header: str, known: Container[str]) -> Named | None:
    """The crawler that a header names (spec C13c), None if it has no product.

    `known` has the lower-case tokens of the crawlers that are known by name.
    """
    outside, comments = _split(header)
    products = [_Part([word.partition("/")[0]]) for part in outside for word in part.words]
    other = _without_compatible(products, comments, known)
    part = _after_compatible(header, outside, comments, known)
    if part is None or (other is not None and part.is_text(known)):
        part = other
    if part is not None:
        return Named(part.name(known))
    return next((Named(product.product, unnamed=True) for product in products if product.product), None)


def _after_compatible(
    header: str, outside: Sequence[_Part], comments: Sequence[Sequence[_Part]], known: Container[str]
) -> _Part | None:
    """The part behind `compatible`, if the header is that of a browser, or the part begins with a known crawler."""
    first = TOKEN.search(header)
    of_browser = first is not None and first[0].lower() in _compatibility()
    found = (_behind_compatible(parts, known) for parts in (*comments, outside))
    return next((part for part in found if part is not None and (of_browser or part.begins_with(known))), None)


def _without_compatible(
    products: Sequence[_Part], comments: Sequence[Sequence[_Part]], known: Container[str]
) -> _Part | None:
    """The first product; or part of a comment that has an address, or begins with a known crawler; or library."""
    of_libraries: list[_Part] = []
    for product in products:
        if product.is_name(known):
            if product.product.lower() not in libraries():
                return product
            of_libraries.append(product)
    with_address = (
        part for parts in comments if any(part.address for part in parts) for part in parts if part.is_name(known)
    )
    of_known = (part for parts in comments for part in parts if part.begins_with(known))
    return next(chain(with_address, of_known, of_libraries), None)


def _split(header: str) -> tuple[Sequence[_Part], Sequence[Sequence[_Part]]]:
    """The parts outside comments, and those of each comment. A comment in a comment is further parts of it."""
    outside: list[str] = []
    comments: list[list[str]] = []
    depth = 0
    for piece in _PARENTHESIS.split(header):
        if piece == "(":
            depth += 1
            if depth == 1:
                comments.append([])
        elif piece == ")":
            depth = max(0, depth - 1)
        else:
            (comments[-1] if depth else outside).append(piece)
    return (
        [_part(part, outside=True) for part in " ".join(outside).split(";") if part],
        [[_part(part) for part in ";".join(comment).split(";") if part] for comment in comments],
    )


def _part(text: str, *, outside: bool = False) -> _Part:
    """Leave out addresses, and what the crawler says that it is like: one product, or the rest of a comment's part."""
    before, *after = _LIKE.split(text)
    text = " ".join([before, *(it.partition(" ")[2] for it in after)]) if outside else before
    words = _BETWEEN_WORDS.split(text)
    bare = [word if word.isalnum() else _without_address(word) for word in words]
    return _Part([word for word in bare if word], bare != words)


def _without_address(word: str) -> str:
    if "@" in word:
        return ""
    found = _ADDRESS.search(word)
    start = len(word) if found is None else found.start()
    scheme = word.find("://")
    # A search for the first letter of a scheme would be quadratic.
    return word[: start if scheme < 0 else min(start, len(word[:scheme].rstrip(_SCHEME)))]


def _behind_compatible(parts: Iterable[_Part], known: Container[str]) -> _Part | None:
    """The first part behind `compatible` that may name a crawler; "compatible with" is a comparison."""
    behind = False
    for part in parts:
        if not behind and part.words and _COMPATIBLE.fullmatch(part.words[0]):
            part = _Part(part.words[1:])
            behind = part.product.lower() != "with"
        if behind and part.is_name(known):
            return part
    return None
