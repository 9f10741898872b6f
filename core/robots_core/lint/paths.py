"""Checks of paths: those that match nothing, are cut, or are misread (spec D)."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from robots_core.lint.advice import INSTEAD_LIMIT, Warned, directive, name_of, quote, show, whole_lines
from robots_core.lint.checked_file import CheckedFile, GroupedRule
from robots_core.robots.lines import AI_TRAINING_KEYS, readable

_UNUSUAL: Final = b" \t,;|\\[(>"
"""Bytes that make a path worth a closer check."""

EVERYTHING: Final = re.compile(rb"/|/?\*+\$?")
"""Patterns of the whole site."""

_ENTITY: Final = re.compile(rb"&#(?:[0-9]+|[xX][0-9A-Fa-f]+);.*")
_PARTS: Final = re.compile(r"[ \t,;|]+")
_JOINED: Final = re.compile(r"[,;|](?=/)")
_TAG_AT_END: Final = re.compile(r"</?[a-z]+[ \t]*/?>$", re.IGNORECASE)
_WORDS: Final = frozenset(
    {"all", "any", "everything", "false", "n/a", "na", "no", "none", "nothing", "null", "off", "on", "true", "yes"}
)
"""Words that are an answer, not a path."""

_URL: Final = re.compile(r"(?:[A-Za-z][A-Za-z0-9+.-]*:)?//[^/?#]*+|www\.[^/?#]*+")
_HOST: Final = re.compile(r"(?:[A-Za-z0-9-]+\.)+[A-Za-z]{2,}(?::[0-9]+)?")
_QUOTES: Final = "\"'`“”„‘’‚«»"
_FILE_TYPE: Final = re.compile(
    r"\.(?:aspx?|avif|bmp|cfm|cgi|css|csv|docx?|exe|gif|html?|ico|inc|jpe?g|json|jsp|js|mp[34]|pdf|php[0-9]?|pl|png"
    r"|pptx?|rar|rss|svg|swf|txt|webp|xlsx?|xml|zip)\$?"
)

_ESCAPED: Final = re.compile(r"\\(?:[.?/()\[\]{}+*$^|-]|[dws][+*{])")
_RANGES: Final = ("0-9", "1-9", "a-z", "A-Z", "a-f", "A-F")
_LONGEST_SET: Final = 40
_ANY: Final = re.compile(r"\(\.\*\??\)|\.\*\??")  # '.+' has no equivalent: '/.+' is all but the home page
_LITERAL: Final = re.compile(r"\\([./?(){}|+-])")


def _faults(file: CheckedFile) -> Mapping[str, list[Warned]]:
    """Yield each path that is misread, once, with its code."""
    faults: dict[str, list[Warned]] = {}
    lines, body = file.scan.lines, file.scan.lines.body
    rules = file.paths
    # Most files have nothing unusual, which one search over all paths shows.
    comments = b"#" in body
    unusual = _is_unusual(b"\n".join([rule.value for rule in rules])) or not all(
        rule.value[0] in b"/*" for rule in rules
    )
    for rule in rules if comments or unusual else ():
        end = lines.start(rule.position) + len(rule.value)
        found = None
        if comments and body[end : end + 1] == b"#":
            found = _cut_at_hash(rule, body[end : end + INSTEAD_LIMIT])
        if found is None and unusual and (rule.value[0] not in b"/*" or _is_unusual(rule.value)):
            found = _fault(rule, file.site)
        if found is not None:
            faults.setdefault(found[0], []).append(found[1])
    return faults


def _is_unusual(value: bytes) -> bool:
    return len(value.translate(None, _UNUSUAL)) < len(value) or b".+" in value


def _cut_at_hash(rule: GroupedRule, rest: bytes) -> tuple[str, Warned] | None:
    """A fault if the comment directly after the path looks like part of it."""
    rest = re.split(rb"[\r\n]", rest, maxsplit=1)[0].rstrip()
    if rest in (b"", b"#") or any(blank in rest for blank in (b" ", b"\t")) or rest.startswith(b"##"):
        return None
    read = f"only {show(rule.value)} is read"
    if _ENTITY.fullmatch(rule.value[-1:] + rest):
        message = f"A '#' begins a comment, so {read}. Write the character that {show(b'&' + rest)} stands for."
        return "hash", Warned(rule.line, message)
    # What a URL has behind '#' is never sent, so an escaped one would match no page.
    message = f"A '#' begins a comment, and crawlers send no URL with one, so {read}. End the path in front of the '#'."
    if EVERYTHING.fullmatch(rule.value):
        return "hash", Warned(rule.line, f"{message} This is the whole site.")
    return "hash", Warned(rule.line, message, directive(rule.key, rule.value))


def _fault(rule: GroupedRule, site: str | None) -> tuple[str, Warned] | None:
    text = readable(rule.value)
    if _is_regex(text):
        meant = _as_pattern(text)
        message = (
            f"{quote(text)} looks like a regular expression. Paths have no other wildcards than '*' and a final '$'."
        )
        return "regex", _instead(rule, message, meant)
    if text[0] not in "/*":
        return "slash", _instead(rule, *_without_slash(text, site))
    parts = _PARTS.split(text) if " " in text or "\t" in text else _JOINED.split(text)
    parts = [part for part in parts if part]
    if len(parts) > 1 and all(part.startswith("/") for part in parts):
        message = f"A rule has one path, and {quote(text)} is read as a single one. Give each path a line of its own."
        # A note may begin with '//' or '/*', and a '/' alone would be the whole site.
        unclear = any(part.startswith(("//", "/*")) or part == "/" for part in parts)
        instead = None if unclear else whole_lines(directive(rule.key, part) for part in parts)
        return "several", Warned(rule.line, message, instead)
    blanks = text.count(" ") + text.count("\t")
    if blanks:
        # Elsewhere it is as likely to begin a note, or to be there by mistake.
        between = all(
            _is_in_a_word(text[at - 1 : at]) and _is_in_a_word(text[at + 1 : at + 2])
            for at, character in enumerate(text)
            if character in " \t"
        )
        message = f"{quote(text)} holds a blank, which no URL has. Only crawlers of the draft of 1996 match it with an"
        if between:
            return "blank", _instead(rule, f"{message} escape.", text.replace(" ", "%20").replace("\t", "%09"))
        return "blank", Warned(rule.line, f"{message} escape. A note begins with '#'; escape a blank that is meant.")
    tag = _TAG_AT_END.search(text)
    if tag or (text[-1] in ",;" and (text[-2] == "/" or text[-2].isalnum()) and "&" not in text):
        end = quote(tag[0] if tag else text[-1])
        message = f"{quote(text)} ends in {end}, which is a part of the path. Write it without, if that is not meant."
        return "sign", Warned(rule.line, message)
    return None


def _instead(rule: GroupedRule, message: str, meant: str | None) -> Warned:
    instead = None if meant is None else directive(rule.key, meant)
    return Warned(rule.line, message + (f" Write {quote(instead)}." if instead else ""), instead)


def _is_regex(text: str) -> bool:
    if text[0] == "^" or ".+" in text or text.startswith(".*") or "(.*" in text or _ESCAPED.search(text):
        return True
    at = text.find("(")
    if at >= 0 and 0 <= text.find("|", at) < text.rfind(")"):
        return True
    at = text.find("[")
    while at >= 0:
        end = text.find("]", at, at + _LONGEST_SET)
        if end >= 0:
            inside = text[at + 1 : end]
            if inside[:1] == "^" or inside.startswith(_RANGES) or text[end + 1 : end + 2] == "+":
                return True
        at = text.find("[", at + 1)
    return False


def _as_pattern(text: str) -> str | None:
    """The equivalent pattern of a simple regular expression, or None."""
    anchored = text[0] == "^"
    pattern = _ANY.sub("*", text.removeprefix("^"))
    pattern = _LITERAL.sub(r"\1", pattern)
    if any(sign in pattern for sign in "[](){}|\\^+") or "$" in pattern[:-1]:
        return None
    if pattern[:1] not in ("/", "*"):
        pattern = ("/" if anchored else "*") + pattern
    while "**" in pattern:
        pattern = pattern.replace("**", "*")
    return pattern


def _without_slash(text: str, site: str | None) -> tuple[str, str | None]:
    """What is wrong with a path that begins with neither '/' nor '*', and the path that is meant."""
    never = f"{quote(text)} never matches"
    bare = text.strip(_QUOTES + " \t")
    url = _URL.match(bare)
    if url is not None:
        path = bare[url.end() :].partition("#")[0]
        path = path if path[:1] == "/" else f"/{path}"
        if site is not None and _bare_host(site.partition("//")[2]) != _bare_host(url[0].rpartition("//")[2]):
            return f"{never}: this file speaks for {site} alone. Other hosts have a robots.txt of their own.", None
        if path == "/":
            return f"{never}: a rule has a path, not a URL. The path '/' is the whole site.", None
        return f"{never}: a rule has a path, not a URL.", path
    if bare.lower().strip(".!") in _WORDS or not any(map(str.isalnum, bare)):
        write = "'/' is the whole site, and an empty Disallow is none of it"
        return f"{never}, since every path begins with '/'; {write}.", None
    if bare != text:
        return f"{never}: paths are written without quotes.", _path_of(bare, site)
    return f"{never}, since every path begins with '/'.", _path_of(text, site)


def _path_of(text: str, site: str | None) -> str | None:
    """The likely path for a text without its first slash; None if it may be something else."""
    if any(map(str.isspace, text)) or text.startswith("..") or ":" in text.partition("/")[0]:
        return None
    if text[:1] in ("/", "*"):
        return text
    if _FILE_TYPE.fullmatch(text) or text[0] in "?&=":
        return f"/*{text}"
    if text.startswith(("./", ".\\", "\\")):
        return "/" + text.replace("\\", "/").removeprefix(".").removeprefix("/")
    if not (text[0].isalnum() or text[0] in "_~.%-"):
        return None
    first, slash, rest = text.partition("/")
    if "." in first and slash and _HOST.fullmatch(first) and not _FILE_TYPE.fullmatch(first[first.rindex(".") :]):
        own = None if site is None else site.partition("//")[2]
        return f"/{rest}" if rest and own is not None and _bare_host(first) == _bare_host(own) else None
    return f"/{text}"


def _bare_host(host: str) -> str:
    return host.lower().removeprefix("www.")


def rule_no_slash(file: CheckedFile) -> Iterator[Warned]:
    """Paths that match nothing because they begin with neither '/' nor '*' (spec D9, I5)."""
    yield from sorted([*file.once(_faults).get("slash", ()), *_training_paths(file)])


def _training_paths(file: CheckedFile) -> Iterator[Warned]:
    for line, key, value in file.lines(*AI_TRAINING_KEYS):
        # A path of AI training may also begin with `$` (spec I5).
        if value and value[:1] not in (b"/", b"*", b"$"):
            message, meant = _without_slash(readable(value), file.site)
            yield Warned(line, f"{name_of(key)}: {message}", None if meant is None else directive(key, meant))


def regular_expression(file: CheckedFile) -> Iterator[Warned]:
    """Paths written as regular expressions."""
    yield from file.once(_faults).get("regex", ())


def several_paths_in_one_line(file: CheckedFile) -> Iterator[Warned]:
    """Several paths, which are read as one."""
    yield from file.once(_faults).get("several", ())


def path_ends_in_sign(file: CheckedFile) -> Iterator[Warned]:
    """Paths that end in a comma or a semicolon, as a list or a statement does."""
    yield from file.once(_faults).get("sign", ())


def path_cut_at_hash(file: CheckedFile) -> Iterator[Warned]:
    """Paths that a '#' cuts (spec B3)."""
    yield from file.once(_faults).get("hash", ())


def read_by_one_dialect_only(file: CheckedFile) -> Iterator[Warned]:
    """Paths with a blank, which only the draft of 1996 matches with `%20` (spec E3)."""
    yield from file.once(_faults).get("blank", ())


def _is_in_a_word(character: str) -> bool:
    return character.isalnum() or character == "_"
