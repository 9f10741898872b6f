"""All checks of a file, as one list of warnings by line."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, TypeAlias

from robots_core.lint import agents, body, groups, keys, overlaps, paths, rates, statements, versions, written
from robots_core.lint.advice import Advice, Warned
from robots_core.lint.checked_file import CheckedFile
from robots_core.robots.lines import Key
from robots_core.robots.rates import RateWarningCode
from robots_core.robots.robots_txt import RobotsTxt

WARNINGS_PER_CODE: Final = 100
"""How many lines are reported per code: a file of half a megabyte can have a quarter of a million faulty lines."""


def lint(robots: RobotsTxt, content_type: str | None = None, site: str | None = None) -> list[Advice]:
    """Warnings by line.

    For a file that was fetched, `content_type` is the field's value and `site` its scheme and authority, as in
    "https://example.com"; None if unknown.
    """
    file = CheckedFile(robots, content_type, site)
    if body.is_not_text(file):
        return list(_bounded("not-text", body.not_text(file)))
    # What is said of these lines would be about a key and a value that are not meant.
    misread = {warned.line for faults in file.once(written.faults) for warned in faults}
    found: list[Advice] = []
    for code, check in CHECKS.items():
        warned = check(file)
        if code in _OF_MEANING and misread:
            warned = (it for it in warned if it.line not in misread)
        found += _bounded(code, warned)
    return sorted(found, key=lambda advice: advice.line)


def _bounded(code: str, warned: Iterable[Warned]) -> Iterator[Advice]:
    for number, (line, message, instead) in enumerate(islice(warned, WARNINGS_PER_CODE + 1)):
        if number == WARNINGS_PER_CODE:
            yield Advice(code, line, "From here on, more lines have the same fault.", None)
        else:
            yield Advice(code, line, message, instead)


_Checks: TypeAlias = Mapping[str, Callable[[CheckedFile], Iterator[Warned]]]

_OF_FILE: Final[_Checks] = {
    "bom": body.bom,
    "file-truncated": body.file_truncated,
    "html-body": body.html_body,
    "not-text-plain": body.not_text_plain,
    "not-text": body.not_text,
    "non-utf8": body.non_utf8,
    "line-truncated": body.line_truncated,
}

_OF_WRITING: Final[_Checks] = {
    "several-directives-in-one-line": written.several_directives_in_one_line,
    "odd-character": written.odd_character,
}

_OF_MEANING: Final[_Checks] = {
    "no-colon": keys.no_colon,
    "typo-key": keys.typo_key,
    "key-read-by-prefix": keys.key_read_by_prefix,
    "unknown-key": keys.unknown_key,
    "empty-agent-token": agents.empty_agent_token,
    "agent-is-user-agent-header": agents.agent_is_user_agent_header,
    "several-agents-in-one-line": agents.several_agents_in_one_line,
    "agent-cut-short": agents.agent_cut_short,
    "agent-misspelt": agents.misspelt_agent,
    "agent-in-two-groups": groups.agent_in_two_groups,
    "rule-before-agent": groups.rule_before_agent,
    "member-before-agent": groups.member_before_agent,
    "group-without-rules": groups.group_without_rules,
    "rate-between-agents": groups.rate_between_agents,
    "whole-site-closed": groups.whole_site_closed,
    "rule-no-slash": paths.rule_no_slash,
    "regular-expression": paths.regular_expression,
    "several-paths-in-one-line": paths.several_paths_in_one_line,
    "path-ends-in-sign": paths.path_ends_in_sign,
    "path-cut-at-hash": paths.path_cut_at_hash,
    "read-by-one-dialect-only": paths.read_by_one_dialect_only,
    "duplicate-rule": overlaps.duplicate_rule,
    "shadowed-rule": overlaps.shadowed_rule,
    "allowed-and-disallowed": overlaps.allowed_and_disallowed,
    "rate-malformed": rates.unread_rates(RateWarningCode.MALFORMED),
    "rate-window": rates.unread_rates(RateWarningCode.WINDOW),
    "rate-clamped": rates.rate_clamped,
    "crawl-delay-ignored": rates.crawl_delay_ignored,
    "crawl-delay-large": rates.crawl_delay_large,
    "version-misplaced": versions.version_misplaced,
    "v2-root-only": versions.v2_root_only,
    "deprecated": versions.deprecated,
    "sitemap-not-absolute": statements.not_absolute(Key.SITEMAP),
    "license-not-absolute": statements.not_absolute(Key.LICENSE),
    "usage-malformed": statements.usage_malformed,
    "signal-in-last-group": statements.signal_in_last_group,
}

CHECKS: Final[_Checks] = {**_OF_FILE, **_OF_WRITING, **_OF_MEANING}
"""Every warning by its code."""
