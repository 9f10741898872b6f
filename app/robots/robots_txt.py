"""One robots.txt in memory: its lines read once, and what each dialect makes of them when it is first asked."""

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import islice
from typing import Final

from app.robots.access import BODY_LIMIT
from app.robots.agents import STAR, Agent
from app.robots.dialects.dialect import Dialect
from app.robots.groups import Group, Groups, Selection
from app.robots.lines import BLANKS, EXTENSION_KEYS, RULE_KEYS, Directive, Form, Key, codes_of, scan
from app.robots.patterns import INDEX_PAGE, Ruleset
from app.robots.terms import Terms, read_terms
from app.robots.usage import USAGE_KEYS
from app.robots.verdict import Permission, Reason, Verdict

ROBOTS_PATH: Final = "/robots.txt"

TOKENS_KEPT: Final = 100
"""For so many tokens a dialect keeps rules and terms: a file can name thousands, and callers can make more up."""

MEMBERS_READ: Final = 2000
"""So many lines beside the rules are read for an agent; no file has more that was not made to be slow."""

VERDICTS_KEPT: Final = 50
"""So many verdicts are kept for each token."""

# What a file costs to keep, in bytes, as tests/robots/test_size.py measures it: itself with one dialect and the rules
# of one agent; a line; a group; a rule; a line about use; a set of a glob; a byte of a pattern after its first star,
# for which there is a state; a byte of a glob.
_FILE_BYTES, _LINE_BYTES, _GROUP_BYTES, _RULE_BYTES, _USAGE_BYTES = 5000, 16, 400, 150, 500
_SET_BYTES, _STATE_BYTES, _TOKEN_BYTES = 32, 20, 4

_IMPLICIT: Final = Verdict(Permission.ALLOW, Reason.IMPLICIT)
_NO_GROUP: Final = Verdict(Permission.ALLOW, Reason.NO_GROUP)
_NO_RULES: Final = Verdict(Permission.ALLOW, Reason.NO_RULES)

# A URL without white space, as far as a Sitemap or License line has to be one.
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*+://\S++")
_SITEMAP: Final = codes_of({Key.SITEMAP})
_LICENSE: Final = codes_of({Key.LICENSE})
_EXTENSIONS: Final = codes_of(EXTENSION_KEYS)
_AGENTS: Final = codes_of({Key.USER_AGENT}, Form)
_RULES: Final = codes_of(RULE_KEYS, Form)
_USAGES: Final = codes_of(USAGE_KEYS)
_VERSIONS: Final = codes_of({Key.ROBOT_VERSION})
_AFTER_STAR: Final = re.compile(rb"\*([^\r\n]*+)")
_ASCII: Final = bytes(range(0x80))
_DELIMITERS: Final = b":/?#[]@"
_SILENT: Final = codes_of({Key.BLANK, Key.UNKNOWN}) + codes_of(Key, (Form.BY_PREFIX,))


class AgentRules:
    """The rules that bind the agents of one token; of the verdicts some are kept, so that most are made once."""

    __slots__ = ("_verdicts", "ruleset", "selection")

    def __init__(self, selection: Selection, ruleset: Ruleset) -> None:
        self.selection = selection
        self.ruleset = ruleset
        self._verdicts: dict[int, Verdict] = {}

    def judge(self, path: str) -> Verdict:
        """Decide about `path`."""
        number = self.ruleset.first(path)
        return self._verdicts.get(number) or self._verdict(number)

    def _verdict(self, number: int) -> Verdict:
        ruleset, selection = self.ruleset, self.selection
        if number < 0:
            verdict = Verdict(Permission.DISALLOW, Reason.TOO_COMPLEX, None, selection)
        elif number == len(ruleset):
            reason = Reason.NO_MATCH if number else Reason.NO_RULES
            verdict = Verdict(Permission.ALLOW, reason, None, selection)
        else:
            rule = ruleset.entry(number)
            permission = Permission.ALLOW if rule.allows else Permission.DISALLOW
            verdict = Verdict(permission, Reason.RULE, rule, selection)
        if len(self._verdicts) >= VERDICTS_KEPT:
            self._verdicts.clear()
        self._verdicts[number] = verdict
        return verdict


class Reading:
    """One file as one dialect reads it; rules are compiled when an agent that they bind first asks."""

    __slots__ = ("_compiled", "_dialect", "_kept", "_room", "_rules", "_selector", "_stated", "_terms", "groups")

    def __init__(self, groups: Groups, dialect: Dialect) -> None:
        self.groups = groups
        self._dialect = dialect
        self._selector = dialect.select(groups)
        self._rules: dict[str, AgentRules] = {}
        self._compiled: dict[tuple[Group, ...], Ruleset] = {}
        self._terms: dict[tuple[str, bool], Terms] = {}
        self._room = 1000 + 2 * len(groups.letters)
        self._kept = 0
        self._stated = 0

    def judge(self, agent: Agent, path: str) -> Verdict:
        """The verdict for `agent` about `path`."""
        token = self._selector.token(agent)
        if token is None:
            return _NO_GROUP if self.groups.spans else _NO_RULES
        return (self._rules.get(token) or self._compile(token)).judge(path)

    def select(self, agent: Agent) -> Selection | None:
        """The groups that bind `agent`; None where there are none."""
        token = self._selector.token(agent)
        return None if token is None else Selection(token, self._selector.groups(token))

    def rules(self, selection: Selection) -> Ruleset:
        """The rules of a selection that `select` returned, compiled."""
        return (self._rules.get(selection.token) or self._compile(selection.token)).ruleset

    def _compile(self, token: str) -> AgentRules:
        """Compile and keep the rules of a token; tokens that the same groups bind share them."""
        groups = self._selector.groups(token)
        ruleset = self._compiled.get(groups)
        made = ruleset or self._dialect.compile(groups)
        self._kept += len(made) if ruleset is None else 0
        if self._kept > self._room or len(self._rules) >= TOKENS_KEPT:
            # Made anew for whoever asks next. Threads that meet here keep too much for a while, or too little.
            self._rules.clear()
            self._compiled.clear()
            self._kept = len(made)
        self._compiled[groups] = made
        rules = self._rules[token] = AgentRules(Selection(token, groups), made)
        return rules

    def _members(self, token: str) -> tuple[Directive, ...]:
        return self.groups.scan.directives(islice(self._selector.members(token), MEMBERS_READ))

    def terms(self, selection: Selection, agent: Agent) -> Terms:
        """What the groups state beside their rules, with the Crawl-delay of `*` where it is inherited (spec C12)."""
        token = selection.token
        inherits = agent.star_delay and token != STAR
        terms = self._terms.get((token, inherits))
        if terms is None:
            members = self._members(token)
            inherited = self._members(STAR) if inherits else ()
            terms = read_terms(members, inherited, self._dialect.rates)
            # Lines that many agents share are read for each of them: so many of them are kept, as of rules.
            self._stated += len(members)
            if self._stated > self._room or len(self._terms) >= TOKENS_KEPT:
                self._terms.clear()
                self._stated = len(members)
            self._terms[token, inherits] = terms
        return terms


class RobotsTxt:
    """A file that every dialect can be asked about. Any bytes are one."""

    def __init__(self, body: bytes, *, truncated: bool = False) -> None:
        self.body = body
        self.scan = scan(body, truncated=truncated)
        self._readings: dict[str, Reading] = {}

    def reading(self, dialect: Dialect) -> Reading:
        """The file as `dialect` reads it."""
        reading = self._readings.get(dialect.name)
        if reading is None:
            # Of two threads that make one at once, both go on with the same.
            made = Reading(Groups(self.scan, dialect.grammar), dialect)
            reading = self._readings.setdefault(dialect.name, made)
        return reading

    def judge(self, dialect: Dialect, agent: Agent, path: str) -> Verdict:
        """What the file says to `agent` about a URL's path and query, as `dialect` reads it."""
        if path == ROBOTS_PATH:
            return _IMPLICIT
        return (self._readings.get(dialect.name) or self.reading(dialect)).judge(agent, path)

    def places(self, codes: bytes) -> list[int]:
        """Where the lines are whose code is one of `codes`."""
        return [found.start() for found in re.finditer(b"[" + re.escape(codes) + b"]", self.scan.lines.codes)]

    @cached_property
    def sitemaps(self) -> tuple[str, ...]:
        """Sitemap values that are absolute URLs, in file order, each once (spec B14)."""
        return self._urls(_SITEMAP)

    @cached_property
    def licenses(self) -> tuple[str, ...]:
        """License values that are absolute URIs, in file order, each once (spec I6)."""
        return self._urls(_LICENSE)

    def _urls(self, codes: bytes) -> tuple[str, ...]:
        values = (directive.text for directive in self.scan.directives(self.places(codes)))
        return tuple(dict.fromkeys(value for value in values if is_absolute(value)))

    @property
    def extensions(self) -> tuple[Directive, ...]:
        """Lines that are reported and decide nothing, in file order (spec G6 to G9, I7)."""
        return self.scan.directives(self.places(_EXTENSIONS))

    def line_texts(self, numbers: Iterable[int]) -> dict[int, str]:
        """Those lines as written, without comment and outer blanks, where they say something."""
        wanted, lines = set(numbers), self.scan.lines
        places = {lines.number(place): place for place in range(len(lines))} if wanted else {}
        return {number: self.scan.text(places[number]) for number in sorted(wanted & places.keys())}

    @cached_property
    def is_utf8(self) -> bool:
        """Whether the body is UTF-8."""
        return self.body.decode("utf-8", "ignore").encode() == self.body

    @property
    def is_html(self) -> bool:
        """Whether the body is markup that holds no directive: a page in place of a file (spec Q9)."""
        markup = self.body[:BODY_LIMIT].lstrip(b"\xef\xbb\xbf" + BLANKS + b"\r\n").startswith(b"<")
        return markup and not self.scan.lines.codes.translate(None, _SILENT)

    @property
    def size(self) -> int:
        """About how many bytes it costs to keep, once a dialect has read it and its rules are compiled for an agent.

        It errs upwards; another dialect, or an agent with other groups, can cost as much again.
        """
        body = self.scan.lines.body
        rules = self._count(_RULES)
        wild = b"".join(_AFTER_STAR.findall(body))
        states = len(wild) + 2 * len(wild.translate(None, _ASCII))
        if b"?" in body:
            # Patterns are kept in their second form, too, in which a delimiter is three bytes (spec X5).
            states += states + 2 * (len(wild) - len(wild.translate(None, _DELIMITERS)))
            rules += rules
        if INDEX_PAGE in body:
            # Each index page stands for its directory, too (spec D10).
            states += states
            rules += rules
        size = _FILE_BYTES + len(self.body) + _LINE_BYTES * len(self.scan.lines) + _GROUP_BYTES * self._count(_AGENTS)
        size += _RULE_BYTES * rules + _STATE_BYTES * states + _USAGE_BYTES * self._count(_USAGES)
        if self._count(_VERSIONS):
            size += _TOKEN_BYTES * len(body) + _SET_BYTES * body.count(b"[")
        return size

    def _count(self, codes: bytes) -> int:
        lines = self.scan.lines.codes
        return len(lines) - len(lines.translate(None, codes))


def is_absolute(url: str) -> bool:
    """Whether it has a scheme and an authority, and no white space."""
    return _ABSOLUTE.fullmatch(url) is not None
