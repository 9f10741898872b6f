"""A robots.txt line by line, in words, from the groups and warnings that the service finds in it. No I/O."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from robots_decisions.parsing import text

LINE_CHARS = 500
"""Characters of a line that are shown."""

_COMMENT = "#"
_FOR_ALL = {"sitemap": "names a sitemap, for every crawler", "license": "names a licence (RSL), for every crawler"}
_OTHERS = {**_FOR_ALL, "user-agent": "names one more crawler of the group"}


class Line(NamedTuple):
    """A line as written, its number, and what it means; `applies` to the crawler, None outside of groups."""

    number: int
    written: str
    meaning: str
    applies: bool | None


def explained_lines(written: str, file: Mapping[str, Any], group: Mapping[str, Any] | None) -> Iterator[Line]:
    """The lines that are neither empty nor comments. `file` has `groups` and `warnings`, as `GET /v1/robots` has them;
    `group` is the one that applies to the crawler, if any."""
    meanings, applies = _of_groups(file["groups"], group)
    for it in file.get("extensions") or ():
        meanings[it["line"]].append(_FOR_ALL.get(it["key"], "decides nothing"))
    for warning in file["warnings"]:
        if warning["line"]:
            meanings[warning["line"]].append(f"warning: {text(warning['message'])}")
    for number, line in enumerate(_lines(written), 1):
        stated = line.partition(_COMMENT)[0].strip()
        if stated:
            meaning = "; ".join(meanings[number]) or _OTHERS.get(_key(stated), "no crawler reads this line")
            yield Line(number, line[:LINE_CHARS], meaning, applies.get(number))


def _lines(written: str) -> Sequence[str]:
    return written.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _key(stated: str) -> str:
    return stated.partition(":")[0].strip().lower()


def _of_groups(
    groups: Sequence[Mapping[str, Any]], applying: Mapping[str, Any] | None
) -> tuple[dict[int, list[str]], dict[int, bool]]:
    """What the lines of groups mean, and whether they apply, by number."""
    meanings: dict[int, list[str]] = defaultdict(list)
    applies: dict[int, bool] = {}
    for group in groups:
        agents = [str(agent) for agent in group["agents"]]
        names = ", ".join(map(text, agents[:20])) + (f" and {len(agents) - 20} more" if len(agents) > 20 else "")
        is_own = applying is not None and (
            group["line"] == applying["line"] or applying["token"].lower() in {agent.lower() for agent in agents}
        )
        stated = [
            (group["line"], f"begins the group for {names}"),
            *((rule["line"], _rule(rule)) for rule in group["rules"]),
            *((it["line"], _member(it)) for it in group["members"]),
            *_declared(group["declared"]),
        ]
        for line, meaning in stated:
            meanings[line].append(meaning)
            applies[line] = is_own
    return meanings, applies


def _rule(rule: Mapping[str, Any]) -> str:
    verb, pattern = f"{rule['directive']}s", text(rule["pattern"])
    if not pattern:
        return f"{verb} nothing"
    is_plain = "*" not in pattern and not pattern.endswith("$")
    return f"{verb} URLs whose path {'starts with' if is_plain else 'matches'} {pattern}"


def _member(member: Mapping[str, Any]) -> str:
    return f"states {text(member['key'])}: {text(member['value'])}"


def _declared(declared: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    for delay in declared["crawl_delays"]:
        yield delay["line"], f"asks for one page every {delay['seconds']:g} s"
    for rate in declared["request_rates"]:
        yield rate["line"], f"asks for one page every {rate['interval']:g} s{_window(rate['window'])}"
    for visit in declared["visit_times"]:
        yield visit["line"], f"welcomes visits{_window(visit)}"


def _window(window: Mapping[str, Any] | None) -> str:
    return "" if window is None else f" from {window['start']} to {window['end']} UTC"
