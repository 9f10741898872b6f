"""A parsed robots.txt: scanned once, grouped and compiled per dialect and agent on first use."""

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import cached_property
from itertools import islice
from typing import Final

from robots_core.robots.access import BODY_LIMIT
from robots_core.robots.agents import STAR, Agent
from robots_core.robots.dialects.dialect import Dialect
from robots_core.robots.groups import Group, Groups, Selection, Selector, spans_of
from robots_core.robots.lines import BLANKS, EXTENSION_KEYS, RULE_KEYS, Directive, Form, Key, codes_of, scan
from robots_core.robots.patterns import INDEX_PAGE, Ruleset, has_second_forms
from robots_core.robots.terms import Terms, read_terms
from robots_core.robots.usage import USAGE_KEYS
from robots_core.robots.verdict import Permission, Reason, Verdict

ROBOTS_PATH: Final = "/robots.txt"

TOKENS_KEPT: Final = 100
"""Tokens whose rules and terms are cached per dialect. A file can name thousands, and callers can invent more."""

MEMBERS_READ: Final = 2000
"""Member lines that are read for an agent; only hostile files have more."""

VERDICTS_KEPT: Final = 50
"""Verdicts that are cached for each token."""

# Memory of a parsed file in bytes, as measured by tests/robots/test_size.py: a file with one dialect and the rules of
# one agent; a line; a group; a rule; a usage line; a byte of a pattern after its first star, which has an automaton
# state; a byte of a glob, without and with sets, whose members are kept as ranges.
_FILE_BYTES, _LINE_BYTES, _GROUP_BYTES, _RULE_BYTES, _USAGE_BYTES = 5000, 16, 400, 150, 500
_STATE_BYTES, _TOKEN_BYTES, _SET_BYTES = 20, 4, 8

# What a file takes now, besides its body and patterns: one that was only scanned, and each of its lines; a reading, and
# one that is like another; a group, and a User-agent line; the rules of a token; a member line that was read.
_SCAN_BYTES, _SCANNED_LINE_BYTES, _READING_BYTES, _LIKE_BYTES, _SPAN_BYTES, _NAME_BYTES = 700, 13, 1200, 600, 150, 280
_TOKEN_RULES_BYTES, _TERMS_BYTES = 700, 100

_IMPLICIT: Final = Verdict(Permission.ALLOW, Reason.IMPLICIT)
_NO_GROUP: Final = Verdict(Permission.ALLOW, Reason.NO_GROUP)
_NO_RULES: Final = Verdict(Permission.ALLOW, Reason.NO_RULES)

# A scheme and an authority without white space; Sitemap and License values need not be more valid than that.
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+://(?=\S)[^\s/?#]*+(?:[/?#].*+)?", re.DOTALL)
_SITEMAP: Final = codes_of({Key.SITEMAP})
_LICENSE: Final = codes_of({Key.LICENSE})
_EXTENSIONS: Final = codes_of(EXTENSION_KEYS)
_AGENTS: Final = codes_of({Key.USER_AGENT}, Form)
_RULES: Final = codes_of(RULE_KEYS, Form)
_USAGES: Final = codes_of(USAGE_KEYS)
_VERSIONS: Final = codes_of({Key.ROBOT_VERSION})
_AFTER_STAR: Final = re.compile(rb"#[^\r\n]*+|\*([^#\r\n]*+)")  # comments have none
_ASCII: Final = bytes(range(0x80))
_DELIMITERS: Final = b":/?#[]@"
_SILENT: Final = codes_of({Key.BLANK, Key.UNKNOWN}) + codes_of(Key, (Form.BY_PREFIX,))


def is_markup(body: bytes) -> bool:
    """Whether the body begins as HTML and XML do."""
    return body[:BODY_LIMIT].lstrip(b"\xef\xbb\xbf" + BLANKS + b"\r\n").startswith(b"<")


class AgentRules:
    """The rules that bind the agents of one token, with a cache of verdicts."""

    __slots__ = ("_verdicts", "ruleset", "selection")

    def __init__(self, selection: Selection, ruleset: Ruleset) -> None:
        self.selection = selection
        self.ruleset = ruleset
        self._verdicts: dict[int, Verdict] = {}

    def judge(self, path: str) -> Verdict:
        """The verdict for `path`."""
        number = self.ruleset.first(path)
        verdict = self._verdicts.get(number)
        if verdict is None:
            if len(self._verdicts) >= VERDICTS_KEPT:
                self._verdicts.clear()
            verdict = self._verdicts[number] = self.verdict(number)
        return verdict

    def verdict(self, number: int) -> Verdict:
        """The verdict by the rule with this number, as Ruleset.first counts them. It is not cached."""
        ruleset, selection = self.ruleset, self.selection
        if number < 0:
            return Verdict(Permission.DISALLOW, Reason.TOO_COMPLEX, None, selection)
        if number == len(ruleset):
            return Verdict(Permission.ALLOW, Reason.NO_MATCH if number else Reason.NO_RULES, None, selection)
        rule = ruleset.entry(number)
        return Verdict(Permission.ALLOW if rule.allows else Permission.DISALLOW, Reason.RULE, rule, selection)


class Reading:
    """One file under one dialect. Rules are compiled when they are first needed.

    `like` is a reading with the same groups and rules, which are then shared.
    """

    __slots__ = (
        "_compiled",
        "_dialect",
        "_kept",
        "_like",
        "_room",
        "_rules",
        "_selector",
        "_stated",
        "_terms",
        "groups",
    )

    def __init__(self, groups: Groups, dialect: Dialect, like: "Reading | None" = None) -> None:
        self.groups: Groups = groups if like is None else like.groups
        self._dialect = dialect
        self._like = like
        self._selector: Selector = dialect.select(groups) if like is None else like._selector
        self._rules: dict[str, AgentRules] = {} if like is None else like._rules
        self._compiled: dict[tuple[Group, ...], Ruleset] = {}
        self._terms: dict[tuple[str, bool], Terms] = {}
        self._room = 1000 + 2 * len(groups.letters)
        self._kept = 0
        self._stated = 0

    def judge(self, agent: Agent, path: str) -> Verdict:
        """The verdict for `agent` and `path`."""
        rules = self.rules_of(agent)
        if rules is None:
            return _NO_GROUP if self.groups.spans else _NO_RULES
        return rules.judge(path)

    def judge_star(self, path: str) -> Verdict | None:
        """The verdict of the groups for `*`, for whoever they bind; None if there are none."""
        rules = self._rules.get(STAR)
        if rules is None:
            if not self._selector.groups(STAR):
                return None
            rules = self._compile(STAR)
        return rules.judge(path)

    def token(self, agent: Agent) -> str | None:
        """The token of the groups that bind `agent`, None if no group does."""
        return self._selector.token(agent)

    def rules_of(self, agent: Agent) -> AgentRules | None:
        """The rules that bind `agent`, None if no group does."""
        token = self._selector.token(agent)
        return None if token is None else self._rules.get(token) or self._compile(token)

    def select(self, agent: Agent) -> Selection | None:
        """The groups that bind `agent`; None if there are none."""
        token = self._selector.token(agent)
        return None if token is None else Selection(token, self._selector.groups(token))

    def rules(self, selection: Selection) -> Ruleset:
        """The compiled rules of a selection that `select` returned."""
        return (self._rules.get(selection.token) or self._compile(selection.token)).ruleset

    def _compile(self, token: str) -> AgentRules:
        """Compile and cache the rules of a token; tokens with the same groups share them."""
        if self._like is not None:
            return self._like._compile(token)
        groups = self._selector.groups(token)
        ruleset = self._compiled.get(groups)
        made = ruleset or self._dialect.compile(groups)
        self._kept += len(made) if ruleset is None else 0
        if self._kept > self._room or len(self._rules) >= TOKENS_KEPT:
            # Others are compiled again when needed. With concurrent threads the count may be wrong for a while.
            self._rules.clear()
            self._compiled.clear()
            self._kept = len(made)
        self._compiled[groups] = made
        rules = self._rules[token] = AgentRules(Selection(token, groups), made)
        return rules

    @property
    def memory(self) -> int:
        """The bytes of memory that it takes now, about, without what it shares with the reading that it is like."""
        letters, codes = self.groups.letters, self.groups.scan.lines.codes
        has_usages = len(codes.translate(None, _USAGES)) < len(codes)
        terms = (_USAGE_BYTES if has_usages else _TERMS_BYTES) * self._stated
        if self._like is not None:
            return _LIKE_BYTES + terms
        names = _SPAN_BYTES * len(self.groups) + _NAME_BYTES * letters.count(b"U")
        rules = _TOKEN_RULES_BYTES * len(self._rules) + sum(it.memory for it in self._compiled.values())
        return _READING_BYTES + len(letters) + names + rules + terms

    def _members(self, token: str) -> tuple[Directive, ...]:
        if not self.groups.member_positions:
            return ()  # as in most files
        return self.groups.scan.directives(islice(self._selector.members(token), MEMBERS_READ))

    def terms(self, selection: Selection, agent: Agent) -> Terms:
        """The terms of the groups, with the Crawl-delay of `*` if the agent inherits it (spec C12)."""
        token = selection.token
        inherits = agent.star_delay and token != STAR
        terms = self._terms.get((token, inherits))
        if terms is None:
            members = self._members(token)
            inherited = self._members(STAR) if inherits else ()
            terms = read_terms(members, inherited, self._dialect.rates)
            # Terms are bounded like rules, by the lines that they were read from.
            self._stated += len(members)
            if self._stated > self._room or len(self._terms) >= TOKENS_KEPT:
                self._terms.clear()
                self._stated = len(members)
            self._terms[token, inherits] = terms
        return terms


class RobotsTxt:
    """A robots.txt that can be judged under every dialect. Any bytes are valid."""

    def __init__(self, body: bytes, *, truncated: bool = False) -> None:
        self.body = body
        self.scan = scan(body, truncated=truncated)
        self._readings: dict[str, Reading] = {}

    def reading(self, dialect: Dialect) -> Reading:
        """The file as `dialect` reads it."""
        reading = self._readings.get(dialect.name)
        if reading is None:
            # If two threads create it at once, both get the first one.
            groups = Groups(self.scan, dialect.grammar)
            made = Reading(groups, dialect, self._alike(groups, dialect))
            reading = self._readings.setdefault(dialect.name, made)
        return reading

    def _alike(self, groups: Groups, dialect: Dialect) -> Reading | None:
        """The reading by `dialect.like`, if it has these groups."""
        like = dialect.like
        if like is None or groups.has_version or groups.spans != spans_of(groups.letters, like.grammar):
            return None
        return self.reading(like)

    def judge(self, dialect: Dialect, agent: Agent, path: str) -> Verdict:
        """The verdict for `agent` and a URL's path and query under `dialect`."""
        if path == ROBOTS_PATH:
            return _IMPLICIT
        return (self._readings.get(dialect.name) or self.reading(dialect)).judge(agent, path)

    def positions(self, codes: bytes) -> list[int]:
        """The positions of the lines whose code is in `codes`."""
        return [found.start() for found in re.finditer(b"[" + re.escape(codes) + b"]", self.scan.lines.codes)]

    @cached_property
    def sitemaps(self) -> tuple[str, ...]:
        """Sitemap values that are absolute URLs, blanks encoded, in file order, each once (spec B14)."""
        return self._urls(_SITEMAP)

    @cached_property
    def licenses(self) -> tuple[str, ...]:
        """License values that are absolute URIs, blanks encoded, in file order, each once (spec I6)."""
        return self._urls(_LICENSE)

    def _urls(self, codes: bytes) -> tuple[str, ...]:
        values = (absolute_url(directive.text) for directive in self.scan.directives(self.positions(codes)))
        return tuple(dict.fromkeys(value for value in values if value is not None))

    @property
    def extensions(self) -> tuple[Directive, ...]:
        """Statements that are reported but affect no decision, in file order (spec G6 to G9, I7)."""
        return self.scan.directives(self.positions(_EXTENSIONS))

    def line_text(self, number: int) -> str | None:
        """The text of a line, without comment and outer blanks; None for a line without a key."""
        lines = self.scan.lines
        position = bisect_left(range(len(lines)), number, key=lines.number)
        is_line = position < len(lines) and lines.number(position) == number
        return self.scan.text(position) if is_line else None

    @cached_property
    def is_utf8(self) -> bool:
        """Whether the body is UTF-8."""
        return self.body.decode("utf-8", "ignore").encode() == self.body

    @property
    def is_html(self) -> bool:
        """Whether the body is markup without any directive: an HTML page instead of a robots.txt (spec Q9)."""
        return is_markup(self.body) and not self.scan.lines.codes.translate(None, _SILENT)

    @property
    def has_rules(self) -> bool:
        """Whether it has Allow or Disallow lines."""
        return bool(self.positions(_RULES))

    @property
    def size(self) -> int:
        """An estimate of its memory in bytes with one dialect and the rules of one agent.

        It errs upwards. Another dialect, or an agent with other groups, can take as much again.
        """
        body = self.scan.lines.body
        rules = self._count(_RULES)
        after_stars = _AFTER_STAR.findall(body)
        # Each index page also adds its directory (spec D10).
        pages = _states_of([text for text in after_stars if INDEX_PAGE in text]), min(rules, body.count(INDEX_PAGE))
        states = _states_of(after_stars)
        if has_second_forms(body):
            # Patterns are also compiled in their second form, in which a delimiter takes three bytes (spec X5).
            wild = b"".join(after_stars)
            states += states + 2 * (len(wild) - len(wild.translate(None, _DELIMITERS)))
            rules += rules
        states += pages[0]
        rules += pages[1]
        size = _FILE_BYTES + len(self.body) + _LINE_BYTES * len(self.scan.lines) + _GROUP_BYTES * self._count(_AGENTS)
        size += _RULE_BYTES * rules + _STATE_BYTES * states + _USAGE_BYTES * self._count(_USAGES)
        if self._count(_VERSIONS):
            size += (_SET_BYTES if b"[" in body else _TOKEN_BYTES) * len(body)
        return size

    @property
    def memory(self) -> int:
        """The bytes of memory that it takes now, about: for the dialects and agents that it was read for."""
        scanned = _SCAN_BYTES + len(self.body) + _SCANNED_LINE_BYTES * len(self.scan.lines)
        return scanned + sum(it.memory for it in self._readings.values())

    def _count(self, codes: bytes) -> int:
        lines = self.scan.lines.codes
        return len(lines) - len(lines.translate(None, codes))


def _states_of(texts: Sequence[bytes]) -> int:
    """Bytes of patterns after normalisation, in which a byte that is encoded takes three."""
    joined = b"".join(texts)
    return len(joined) + 2 * len(joined.translate(None, _ASCII))


def absolute_url(written: str) -> str | None:
    """A URL with its white space encoded; None if it lacks a scheme or an authority (spec B14)."""
    if _ABSOLUTE.fullmatch(written) is None:
        return None
    if not any(map(str.isspace, written)):
        return written
    from urllib.parse import quote  # here, since few files need it

    return "".join(quote(it) if it.isspace() else it for it in written)
