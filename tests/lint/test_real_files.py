"""Real files: no warning is more frequent than plausible, and replacements fix the lines.

No replacement closes or opens more, for any agent, than the line that it replaces was meant to.
What a line was meant to say is known where we write the fault: each line of RULES, AGENT_LINES and STATEMENTS goes into
real files, with the line that its owner means beside it. With the advice followed, every decision must be as in the
faulty file or as in the one that was meant: the verdict, and the state of each purpose.

Every replacement that real files get is put into them, too. What their owners meant is not known, but a rule can mean
neither another group nor the contrary, and a User-agent line no crawler that it does not name.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import chain, islice
from typing import Final, NamedTuple

import pytest

from robots_core.lint.linter import CHECKS, lint
from robots_core.purposes.judge import judge_for
from robots_core.purposes.policy import PURPOSES, PurposePolicy
from robots_core.robots.agents import Agent, read_agent
from robots_core.robots.dialects import DIALECTS
from robots_core.robots.robots_txt import RobotsTxt
from tests.corpus import real_files
from tests.lint.counts import counts, real_advice

SITE: Final = "https://h.example"
FILES: Final = 40
"""Real files that get faults, of about 1,900 that are small enough: every so many, so that a run takes some 20 s."""

LARGEST: Final = 2500
AGENTS: Final = [
    ("ExampleBot", "rfc9309"),
    ("*", "rfc9309"),
    ("GPTBot", "rfc9309"),
    ("Googlebot", "google"),
    ("SeznamBot", "seznam"),
]
EVERY_PURPOSE: Final = PurposePolicy(PURPOSES)
PATHS: Final = ("/", "/zz", "/zz/x.pdf", "/a.pdf")


class Mutant(NamedTuple):
    """A faulty line, and the lines that it is meant as; `{key}` and `{value}` are of the real line.

    `{bare}` is the value without its first slash, `{use}` is y of an Allow and n of a Disallow. `above`: the line goes
    above the first line of the file.
    """

    written: str
    meant: str
    above: bool = False


NOTHING: Final = "# nothing"
TRAINING: Final = "Content-Usage: {value} train-ai={use}"
"""What AllowAITraining and DisallowAITraining mean, in a form that Google does not take for a rule."""

RULES: Final = [
    *(
        Mutant(f"{{key}}{more}: {{value}}", NOTHING)
        for more in ("AI", "-AI", "AIInference", "-AI-Search", "-LLM", "-images")
    ),
    *(Mutant(f"{before}{{key}}: {{value}}", NOTHING) for before in ("AI-", "No", "No-", "AI", "X-")),
    *(Mutant(f"{{key}}{more}: {{value}}", TRAINING) for more in ("-AI-Training", "-Training", "AITraining")),
    *(
        Mutant(f"{{key}}{more}", "{key}: {value}")
        for more in (" {value}", "-all: {value}", ";: {value}", "ed: {value}")
    ),
    *(Mutant(f"{{key}}: {value}", "{key}: {value}") for value in ("{bare}", '"{value}"', "^{value}", "“{value}”")),
    Mutant("{key}: " + SITE + "{value}", "{key}: {value}"),
    Mutant("{key}: https://other.example{value}", NOTHING),
    Mutant("{key} {value} /zz", "{key}: {value}\n{key}: /zz"),
    Mutant("{key}: {value}, /zz", "{key}: {value}\n{key}: /zz"),
    Mutant("{key} all that we have", NOTHING),
    Mutant("{key}: {value} b", "{key}: {value}%20b"),
    # What owners wrote, in reports and in real files.
    *(Mutant(f"{{key}}: {{value}}#{rest}", "{key}: {value}") for rest in ("b", "!", "q=", "/*", "!/b")),
    *(
        Mutant(f"{{key}}: {{value}}{note}", "{key}: {value}")
        for note in (" // b", " ; b", " <!-- b -->", " (b)", " -- b")
    ),
    *(Mutant(f"{{key}}: {word}", NOTHING) for word in ("all", "none", "ALL", "yes", "N/A", "-", "/ search")),
    *(
        Mutant(f"{{key}}: {value}", "{key}: {value}")
        for value in ("({value})", "[{value}]", "{value};", "{value},", "{value}<br>", "{value} //", "{value} /")
    ),
    *(
        Mutant(f"{before}{{key}}: {{value}}", "{key}: {value}")
        for before in ("- ", "• ", "> ", "1. ", "<p>", "\u200b", "\u3000")
    ),
    *(Mutant(f"{{key}}{colon}{{value}}", "{key}: {value}") for colon in ("：", ":: ", " : : ", ":\u00a0", "\u00a0: ")),
    *(
        Mutant(f"{{key}}: {{value}}{unseen}", "{key}: {value}")
        for unseen in ("\u00a0", "\u3000", "\u200b", "\u200e", " \u200e", "\ufeff", "\u2060", "\u00ad", "\u2002")
    ),
    Mutant("{key}: /\u200b{bare}", "{key}: {value}"),
    *(
        Mutant(f"{{key}}: {{value}}{between}{other}: /zz", f"{{key}}: {{value}}\n{other}: /zz")
        for other in ("Disallow", "Allow")
        for between in (" ", "", ", ", "; ", " | ", "\\n", "\t")
    ),
    Mutant("{key}: {value} disallow:/zz", "{key}: {value}\nDisallow: /zz"),
    Mutant("{key}: {value} Sitemap: https://h.example/s.xml", "{key}: {value}\nSitemap: https://h.example/s.xml"),
    Mutant("Sitemap: https://h.example/s.xml{key}: {value}", "Sitemap: https://h.example/s.xml\n{key}: {value}"),
    *(
        Mutant(f"{{key}}: {{value}}{between}User-agent: {name}", f"{{key}}: {{value}}\nUser-agent: {name}")
        for name in ("ZzBot", "*")
        for between in (" ", "")
    ),
    Mutant("{key}: {key}: {value}", "{key}: {value}"),
    Mutant("{key}: h.example{value}", "{key}: {value}"),
    Mutant("{key}: www.h.example{value}", "{key}: {value}"),
    Mutant("{key}: other.example{value}", NOTHING),
    Mutant("{key}: {value}", "User-agent: *\n{key}: {value}", above=True),
    Mutant("Disallow: /", NOTHING, above=True),
]
MISSPELT: Final = {
    "Allow": ("Alow", "Alllow", "Allows"),
    "Disallow": ("Disallop", "Dissallow", "Dsallow", "Disallows"),
    "User-agent": ("User_agent", "Useragent", "User agent", "User-agnt"),
}
AGENT_LINES: Final = [
    *(Mutant(f"User-agent: {value}", "User-agent: {value}") for value in ("“{value}”", "{value}*", "[{value}]")),
    Mutant("User-agent: Mozilla/5.0 (compatible; {value}/1.0)", "User-agent: {value}"),
    Mutant("User-agent: {value}, ZzBot", "User-agent: {value}\nUser-agent: ZzBot"),
    Mutant("User-agent {value}", "User-agent: {value}"),
    *(
        Mutant(f"User-agent: {name}{between}{rule}", f"User-agent: {name}\n{rule}")
        for name in ("{value}", "*", "ZzBot")
        for rule in ("Disallow: /", "Disallow: /zz", "Allow: /")
        for between in (" ", "; ", "\\n")
    ),
    *(
        Mutant(f"User-agent: {value}", "User-agent: {value}")
        for value in ("{value}\u00a0", "{value}\u200b", ": {value}")
    ),
    *(Mutant(f"User-agent{colon}{{value}}", "User-agent: {value}") for colon in ("：", ":: ")),
    Mutant("User\u2013agent: {value}", "User-agent: {value}"),
    *(Mutant(f"User-agent: {value}", "User-agent: *") for value in ("all", "*\u00a0", "everyone")),
    *(Mutant(f"User-agent: {value}", "User-agent: Googlebot") for value in ("Google", "google")),
    Mutant("User-agent: Bing", "User-agent: bingbot"),
    Mutant("User-agent: Baidu", "User-agent: Baiduspider"),
    Mutant("User-agent: all except {value}", NOTHING),
    *(
        Mutant(f"User-agent: GPTBot{between}ClaudeBot", "User-agent: GPTBot\nUser-agent: ClaudeBot")
        for between in (" and ", " & ", "; ", " / ", "|", " ")
    ),
    *(Mutant(f"User-agent: {name}", "User-agent: Googlebot") for name in ("Googelbot", "Google-bot", "Googlebots")),
    Mutant("User-agent:", "User-agent:"),
    Mutant("User-agent {value} and all others", NOTHING),
]
STATEMENTS: Final = [
    Mutant("Content-Usage: *.pdf train-ai=n", "Content-Usage: /*.pdf train-ai=n"),
    Mutant("Content-Usage: .pdf train-ai=no, search=y", "Content-Usage: /*.pdf train-ai=n, search=y"),
    Mutant("Content-Usage: {value} train-ai=no", "Content-Usage: {value} train-ai=n"),
    Mutant("Content-usage {value} train-ai=n", "Content-Usage: {value} train-ai=n"),
    Mutant("Content-Usage: search=n,,", "Content-Usage: search=n"),
    Mutant("Content-Signal: {value} search=no", "Content-Usage: {value} search=n"),
    Mutant("Content-Signal: {value} ai-train=yes, search=no", "Content-Usage: {value} train-ai=y, search=n"),
    Mutant("Content-Signal: {value} ai-input=no", NOTHING),
    Mutant("Content-Signal: ai-traain=no, search=yes", "Content-Signal: ai-train=no, search=yes"),
    Mutant("Content-Signals: search=no", "Content-Signal: search=no"),
    Mutant("DisallowAITraining: {value}", "Content-Usage: {value} train-ai=n"),
    Mutant("DisallowAITraining: {bare}", "Content-Usage: {value} train-ai=n"),
    Mutant(
        "DisallowAITraining: /\nAllowAITraining: {value}",
        "Content-Usage: / train-ai=n\nContent-Usage: {value} train-ai=y",
    ),
    Mutant("Content-Usage: {value} search=y\nDisallow-Training: /", "Content-Usage: {value} search=y, train-ai=n"),
    Mutant("AllowAITraining: {value}", "Content-Usage: {value} train-ai=y"),
]


class Case(NamedTuple):
    """A file with a fault, the same as it is meant, and the lines (0-based) that the fault takes."""

    lines: list[str]
    meant: list[str]
    begin: int
    end: int
    value: str
    mutant: Mutant


def files() -> list[str]:
    """Small real files of several lines, the same in each run."""
    small = [body for body in dict.fromkeys(real_files().values()) if len(body) <= LARGEST and body.isascii()]
    texts = [body.decode() for body in small if b"\0" not in body and body.lower().count(b"allow:") > 2]
    return texts[:: len(texts) // FILES]


def cases(text: str, number: int) -> Iterator[Case]:
    """Each mutant in a line of its kind, another one for each, so that all lines of long files have their turn."""
    lines = text.splitlines()
    agents = [at for at, line in enumerate(lines) if key_of(line) == "User-agent" and value_of(line).isalpha()]
    first = next((at for at, line in enumerate(lines) if key_of(line) == "User-agent"), len(lines))
    rules = [at for at, line in enumerate(lines) if at > first and is_plain_rule(line)]
    for turn, mutant in enumerate(RULES if rules else ()):
        yield case(lines, rules[(number + turn) % len(rules)], mutant)
    for turn, mutant in enumerate(STATEMENTS if rules else ()):
        yield case(lines, rules[(number + turn) % len(rules)], mutant, kept=True)
    for turn, mutant in enumerate(AGENT_LINES if agents else ()):
        yield case(lines, agents[(number + turn) % len(agents)], mutant)
    for at in (*rules[:1], *rules[-1:], *agents[:1]):
        for written in MISSPELT[key_of(lines[at])]:
            yield case(lines, at, Mutant(f"{written}: {{value}}", "{key}: {value}"))


def key_of(line: str) -> str:
    return line.partition(":")[0].strip().capitalize()


def value_of(line: str) -> str:
    return line.partition(":")[2].partition("#")[0].strip()


def is_plain_rule(line: str) -> bool:
    return key_of(line) in ("Allow", "Disallow") and is_plain(value_of(line))


def is_plain(value: str) -> bool:
    """Whether the path is only a path, of which a mutant can be written."""
    return value.startswith("/") and value[1:2].isalnum() and not set(value) & set(" \t,;\\[]()^+|{}\"'.")


def case(lines: list[str], at: int, mutant: Mutant, *, kept: bool = False) -> Case:
    value = value_of(lines[at])
    fill = {"key": key_of(lines[at]), "value": value, "bare": value.removeprefix("/")}
    fill["use"] = "y" if fill["key"] == "Allow" else "n"
    written, meant = mutant.written.format(**fill).split("\n"), mutant.meant.format(**fill).split("\n")
    begin, rest = (0, 0) if mutant.above else (at + kept, at + 1)
    faulty, intended = [*lines[:begin], *written, *lines[rest:]], [*lines[:begin], *meant, *lines[rest:]]
    return Case(faulty, intended, begin, begin + len(written), value, mutant)


@lru_cache(maxsize=4096)
def agent_of(name: str) -> Agent:
    return read_agent(name)


def decisions(lines: list[str], agents: list[tuple[str, str]], paths: list[str]) -> list[dict[str, str]]:
    """The verdict and the state of each purpose, for each agent and path."""
    robots = RobotsTxt("\n".join(lines).encode())
    found = []
    for name, dialect in agents:
        reading, agent = robots.reading(DIALECTS[dialect]), agent_of(name)
        selection = reading.select(agent)
        usage = None if selection is None else reading.terms(selection, agent).usage
        for path in paths:
            verdict = robots.judge(DIALECTS[dialect], agent, path)
            stated = None if usage is None else usage.at(path, allowed=verdict.permission == "allow")
            verdict, judged = judge_for(EVERY_PURPOSE, verdict, stated)
            found.append({"verdict": str(verdict.permission), **dict(judged.states)})
    return found


def asked(of: Case) -> tuple[list[tuple[str, str]], list[str]]:
    """The agents and paths of a case: those of its line, of the file, and some that are in none."""
    names = [value_of(line) for line in of.lines if key_of(line) == "User-agent" and value_of(line).isalpha()]
    own = [
        (name, "rfc9309") for name in islice(dict.fromkeys([of.value if of.value.isalpha() else "ZzBot", *names]), 3)
    ]
    path = of.value.replace("*", "q").replace("$", "") if of.value.startswith("/") else "/zz"
    others = [value_of(line) for line in of.lines if is_plain(value_of(line))][:3]
    return AGENTS + own, list(
        dict.fromkeys([path, f"{path}x", f"{path}%20b", f"{path}%23b", f"{path}.pdf", *PATHS, *others])
    )


def harm(of: Case) -> Iterator[str]:
    """What the advice about the faulty lines does that is neither as they are read nor as they are meant."""
    agents, paths = asked(of)
    replaced = dict.fromkeys(
        (advice.code, advice.line, advice.instead)
        for advice in lint(RobotsTxt("\n".join(of.lines).encode()), site=SITE)
        if of.begin < advice.line <= of.end and advice.instead is not None
    )
    if not replaced:
        return
    read, meant = decisions(of.lines, agents, paths), decisions(of.meant, agents, paths)
    for code, line, instead in replaced:
        advised = decisions([*of.lines[: line - 1], *(instead or "").split("\n"), *of.lines[line:]], agents, paths)
        for number, (got, was, wanted) in enumerate(zip(advised, read, meant, strict=True)):
            worse = {name: it for name, it in got.items() if it not in (was[name], wanted[name])}
            if worse:
                who, where = agents[number // len(paths)], paths[number % len(paths)]
                line_text = of.lines[line - 1]
                yield f"{code}: {line_text!r} -> {instead!r}: {who} at {where}: {worse}, was {was}, meant {wanted}"
                break


@pytest.mark.parametrize("part", range(3))
def test_no_advice_closes_or_opens_more_than_the_line_was_meant_to(part: int) -> None:
    found = [harm(it) for number, text in list(enumerate(files()))[part::3] for it in cases(text, number)]
    assert len(found) > 1000
    assert list(islice(chain.from_iterable(found), 5)) == []


def test_every_mutant_of_a_rule_is_warned_of_and_many_have_advice() -> None:
    advised: Counter[bool] = Counter()
    lines = ["User-agent: *", "Allow: /p", "Disallow: /a", "Disallow: /b"]
    for mutant in (*RULES, *STATEMENTS):
        of = case(lines, 2, mutant, kept=mutant in STATEMENTS)
        found = [it for it in lint(RobotsTxt("\n".join(of.lines).encode()), site=SITE) if of.begin < it.line <= of.end]
        assert found, of.lines
        advised[any(it.instead for it in found)] += 1
    assert advised[True] > 20


class Applied(NamedTuple):
    """A replacement in a real file: the lines before and after, and the one that was replaced."""

    host: str
    code: str
    lines: list[str]
    line: int
    instead: str

    @property
    def written(self) -> str:
        return self.lines[self.line - 1]

    @property
    def advised(self) -> list[str]:
        return [*self.lines[: self.line - 1], *self.instead.split("\n"), *self.lines[self.line :]]


def applied() -> Iterator[Applied]:
    """Every replacement for every real file."""
    for host, (body, found) in real_advice().items():
        lines = body.decode("utf-8-sig", "replace").splitlines()
        if len(lines) != RobotsTxt(body).scan.lines.count:
            continue
        for code, line, instead in dict.fromkeys((it.code, it.line, it.instead) for it in found):
            if instead is not None:
                yield Applied(host, code, lines, line, instead)


WORDS: Final = re.compile(r"[A-Za-z0-9_-]+|\*")


def named_in(lines: list[str]) -> list[str]:
    """The agents that the lines name, as written."""
    values = [line.partition(":")[2] for line in lines if "agent" in line.lower().partition(":")[0]]
    return list(dict.fromkeys(found[0].lower() for value in values if (found := WORDS.match(value.strip()))))


def paths_near(of: Applied) -> list[str]:
    """Paths of the line, of its replacement and of the lines around it, and beyond the ends of these."""
    own = _paths([of.written, *of.instead.split("\n")])
    near = _paths([*of.lines[max(0, of.line - 4) : of.line + 6], *of.lines[:4]])
    return list(dict.fromkeys(["/", "/zz", *own[:8], *(f"{path}x" for path in own[:4]), *near[:4]]))


def _paths(lines: list[str]) -> list[str]:
    found = (it[0] for line in lines for it in re.finditer(r"/[^\s,;#]*", line.partition("#")[0]))
    return [re.sub(r"[*$\\\u200b-\u200f]", "", path) for path in found]


def verdicts(lines: list[str], agents: list[str], paths: list[str]) -> dict[tuple[str, str], str]:
    robots, dialect = RobotsTxt("\n".join(lines).encode()), DIALECTS["rfc9309"]
    return {(name, path): robots.judge(dialect, agent_of(name), path).permission for name in agents for path in paths}


def unmeant(of: Applied) -> str | None:
    """A verdict that the replacement changes otherwise than the line can mean.

    A rule changes verdicts of the agents of its group only, and a Disallow opens and an Allow closes nothing. A line
    that names agents changes those that it names, and where it ends a group, those of that group.
    """
    agents = list(dict.fromkeys([*named_in(of.advised), *named_in(of.lines), "*", "unnamedbot"]))
    paths = paths_near(of)
    before, after = verdicts(of.lines, agents, paths), verdicts(of.advised, agents, paths)
    changed = [asked for asked in before if before[asked] != after[asked]]
    if not changed:
        return None
    text = f"{of.written} {of.instead}".lower()
    words = {word.lower() for word in WORDS.findall(text)}
    names_agents = "agent" in text
    group = RobotsTxt("\n".join([*of.lines[: of.line], "Disallow: /in-the-group"]).encode())
    in_group = {name for name in agents if group.judge(DIALECTS["rfc9309"], agent_of(name), "/in-the-group").rule}
    for name, path in changed:
        named = name in words or (name == "unnamedbot" and "*" in words)
        ends_group = names_agents and "allow" in of.written.lower()
        if names_agents and (named or (ends_group and name in in_group)):
            continue
        closes = {"disallow": True, "allow": False}.get(of.instead.partition(":")[0].lower())
        if not names_agents and name in in_group and closes is (after[name, path] == "disallow"):
            continue
        return f"{of.host}:{of.line} {of.code}: {of.written!r} -> {of.instead!r}: {name} at {path}: {after[name, path]}"
    return None


def test_no_replacement_in_a_real_file_changes_what_cannot_be_meant() -> None:
    found = list(applied())
    assert len(found) > 1000
    assert [wrong for it in found if (wrong := unmeant(it)) is not None] == []


MISREAD: Final = {
    *("no-colon", "typo-key", "key-read-by-prefix", "unknown-key", "rule-before-agent", "rule-no-slash"),
    *("agent-is-user-agent-header", "several-agents-in-one-line", "agent-cut-short", "empty-agent-token"),
    *("agent-misspelt", "several-directives-in-one-line", "odd-character"),
    *("regular-expression", "several-paths-in-one-line", "path-cut-at-hash", "read-by-one-dialect-only"),
    *("usage-malformed", "v2-root-only"),
}
"""Warnings of lines that are read otherwise than meant. All others are about lines that are read as written."""


def test_advice_about_a_line_that_is_read_as_written_changes_no_decision() -> None:
    assert set(CHECKS) > MISREAD
    checked: Counter[str] = Counter()
    for body, found in real_advice().values():
        lines = body.decode("utf-8-sig", "replace").splitlines()
        if len(body) > LARGEST or len(lines) != RobotsTxt(body).scan.lines.count:
            continue
        for advice in found:
            if advice.instead is None or advice.code in MISREAD:
                continue
            of = Case(lines, [], 0, 0, "", Mutant("", ""))
            advised = [*lines[: advice.line - 1], *advice.instead.split("\n"), *lines[advice.line :]]
            assert decisions(advised, *asked(of)) == decisions(lines, *asked(of)), advice
            checked[advice.code] += 1
    assert sum(checked.values()) > 50


USUAL = 0.06
"""The largest plausible share of files with a fault, unless listed below; `python -m tests.lint.counts` prints it."""

MORE = {"shadowed-rule": 0.25, "agent-cut-short": 0.12, "duplicate-rule": 0.12, "deprecated": 0.1}
"""Faults that are more frequent: long lists of paths and of old robots, and Noindex lines."""


def test_j5_no_warning_is_more_frequent_than_plausible() -> None:
    found = counts()
    assert found.files > 3000
    too_many = {code: n for code, n in found.with_code.items() if n / found.files > MORE.get(code, USUAL)}
    assert too_many == {}
    # Most codes occur, and most files have no warning.
    assert len(found.with_code) > 25
    assert sum(1 for _, advised in real_advice().values() if not advised) > found.files / 2
    assert found.with_code.keys() <= CHECKS.keys()


def test_j5_replacements_fix_lines_of_real_files() -> None:
    wrong: list[str] = []
    for host, (body, found) in real_advice().items():
        for code in {advice.code for advice in found if advice.instead is not None}:
            advice = next(advice for advice in found if advice.code == code and advice.instead is not None)
            lines = body.decode("utf-8-sig", "replace").splitlines()
            if len(body) > 20_000 or len(lines) != RobotsTxt(body).scan.lines.count:
                continue
            lines[advice.line - 1] = advice.instead or ""
            again = lint(RobotsTxt("\n".join(lines).encode()), site=f"https://{host}")
            if any((it.code, it.line) == (code, advice.line) for it in again):
                wrong.append(f"{host}:{advice.line}: {code}: {advice.instead!r}")
    assert wrong == []
